// An app of each framework, as a user writes it: a page of its own, and sessions at /offstage. JavaScript, because the
// frameworks are not installed where the types are checked.

import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import express from 'express';
import Fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';

/** Each returns a server for `node:http`. */
export const hosts = {
  express(web) {
    const app = express();
    app.use(web.handle);
    app.use(express.json());
    app.get('/', (_request, response) => response.send('the page'));
    app.post('/form', (request, response) => response.json(request.body));
    return createServer(app);
  },

  'express, under a path'(web) {
    const app = express();
    app.use('/offstage', web.handle);
    app.use(express.json());
    app.get('/', (_request, response) => response.send('the page'));
    app.post('/form', (request, response) => response.json(request.body));
    return createServer(app);
  },

  hono(web) {
    const app = new Hono();
    app.all('/offstage', (context) => web.fetch(context.req.raw));
    app.get('/', (context) => context.text('the page'));
    app.post('/form', async (context) => context.json(await context.req.json()));
    const listener = getRequestListener(app.fetch);
    return createServer((request, response) => void listener(request, response));
  },

  async fastify(web) {
    const app = Fastify();
    app.addHook('onRequest', (request, reply, done) => web.handle(request.raw, reply.raw, done));
    app.get('/', () => 'the page');
    app.post('/form', (request) => request.body);
    await app.ready();
    return app.server;
  },

  koa(web) {
    const app = new Koa();
    app.use(async (context, next) => {
      if (context.path !== '/offstage') return next();
      context.respond = false;
      web.handle(context.req, context.res);
    });
    app.use(async (context) => {
      if (context.path === '/') context.body = 'the page';
      if (context.path === '/form') {
        let text = '';
        for await (const chunk of context.req) text += chunk;
        context.body = JSON.parse(text);
      }
    });
    return createServer(app.callback());
  },
};
