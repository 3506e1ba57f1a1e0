// Scripts that broke a promise once. They are kept as they were found; where the runtime takes its
// entries in another order today, their strikes fall elsewhere, and they are conversations like any other.

export const found: readonly { readonly why: string; readonly json: string }[] = [
  {
    // The client told to stop reported that of the second item it had played nothing, and the first
    // counted as played by that.
    why: 'P4: a notice with another reply behind it, over which somebody says "mm-hm"',
    json: '{"seed":786,"session":"voice","steps":[{"at":0,"do":"say","words":"Please use research and watching, request 0","calls":["research","watching"]},{"at":6145,"do":"notify","text":"News number 6","priority":"urgent"}],"strikes":[{"point":"line.refuses","occurrence":1},{"point":"crash.afterAppend","occurrence":30},{"point":"crash.afterAppend","occurrence":44},{"point":"user.bargesIn","occurrence":3},{"point":"model.slow","occurrence":5},{"point":"journal.slow","occurrence":52},{"point":"user.bargesIn","occurrence":7}]}',
  },
];
