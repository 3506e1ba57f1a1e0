import { expect, test } from 'vitest';
import { geminiLive } from '../../../src/adapters/gemini-live/index.ts';
import { traitsOf } from '../../../src/adapters/gemini-live/models.ts';

test.each([
  ['gemini-2.5-flash-native-audio-preview-12-2025', '2.5 native audio'],
  ['models/gemini-live-2.5-flash-native-audio', '2.5 native audio'],
  ['gemini-3.1-flash-live-preview', '3.1 flash live'],
  ['gemini-3.8-live', '3.8 live'],
  ['projects/p/locations/l/publishers/google/models/gemini-3.8-live', '3.8 live'],
  ['gemini-3.8-live-extended-thinking', '3.8 live extended thinking'],
  ['gemini-4.0-live', 'unknown'],
  ['gemini-3.81-live', 'unknown'],
])('assigns %s to the family %s', (model, family) => {
  expect(traitsOf(model).family).toBe(family);
});

const able = (model: string) => {
  const { capabilities } = geminiLive({ apiKey: 'k', model });
  const {
    defersToolResults,
    schedulesToolResults,
    silentContext,
    updatesSession,
    cancelsResponses,
  } = capabilities;
  return {
    defersToolResults,
    schedulesToolResults,
    silentContext,
    updatesSession,
    cancelsResponses,
  };
};

test("derives a transport's capabilities from its model", () => {
  const everything = {
    defersToolResults: true,
    schedulesToolResults: true,
    silentContext: true,
    updatesSession: true,
    cancelsResponses: true,
  };
  const nothing = {
    defersToolResults: false,
    schedulesToolResults: false,
    silentContext: false,
    updatesSession: false,
    cancelsResponses: false,
  };
  expect(able('gemini-3.8-live')).toEqual(everything);
  expect(able('gemini-3.8-live-extended-thinking')).toEqual(everything);
  expect(able('gemini-2.5-flash-native-audio-latest')).toEqual({
    ...everything,
    updatesSession: false,
  });
  expect(able('gemini-3.1-flash-live-preview')).toEqual(nothing);
});

test('MODELS-1: assumes no capabilities for an unknown model', () => {
  expect(able('gemini-9-live')).toEqual(able('gemini-3.1-flash-live-preview'));
});

test('declares that every model responds on its own and infers utterances', () => {
  const { capabilities } = geminiLive({ apiKey: 'k' });
  expect(capabilities).toMatchObject({
    inputSampleRateHz: 16_000,
    outputSampleRateHz: 24_000,
    utterances: 'inferred',
    responds: 'by_itself',
    toolCalls: 'named',
    resumes: true,
    acceptsImages: true,
    truncatesAudio: false,
  });
});
