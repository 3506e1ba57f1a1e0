// A stretch of the lead agent's speech on its way to the page, at 24 kHz: four bytes that name
// the item (the `ref` of `audio.item`, unsigned, little-endian), then Int16 samples,
// little-endian. The samples stay aligned, so the page reads them without a copy.

/** Of the lead agent's speech, on the wire and in the page. */
export const SPEECH_RATE_HZ = 24_000;

const HEADER_BYTES = 4;

export interface AudioPacket {
  readonly ref: number;
  readonly samples: Int16Array;
}

export function encodeAudioPacket({ ref, samples }: AudioPacket): Uint8Array {
  const packet = new Uint8Array(HEADER_BYTES + samples.length * 2);
  const view = new DataView(packet.buffer);
  view.setUint32(0, ref, true);
  samples.forEach((sample, index) => view.setInt16(HEADER_BYTES + index * 2, sample, true));
  return packet;
}

/** Every browser runs on little-endian machines, as typed arrays there assume. */
export function decodeAudioPacket(packet: ArrayBuffer): AudioPacket {
  return {
    ref: new DataView(packet).getUint32(0, true),
    samples: new Int16Array(packet, HEADER_BYTES),
  };
}
