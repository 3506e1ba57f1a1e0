// Validates an image that the user shows to the lead model. The image is passed on and not stored. The conversation
// contains only a note about it.

import { shown } from '../../../values/plain-checks.ts';
import { ConfigurationError } from '../../../values/errors.ts';

/** An image that the user shows, for a session's `showImage()`. */
export interface ShownImage {
  /** `image/png`, `image/jpeg` or `image/webp`. */
  readonly mediaType: string;
  /** The bytes of the file, not base64-encoded; at most 5 MiB. */
  readonly data: Uint8Array;
}

const MEDIA_TYPES: readonly string[] = ['image/png', 'image/jpeg', 'image/webp'];
export const MAX_IMAGE_BYTES = 5 * 1024 * 1024;

/** @throws {ConfigurationError} `INVALID_IMAGE` */
export function checkImage(image: ShownImage): void {
  if (typeof image !== 'object' || image === null) throw invalid(`an image, got ${shown(image)}`);
  const { mediaType, data } = image;
  if (!MEDIA_TYPES.includes(mediaType))
    throw invalid(`\`mediaType\` to be one of ${MEDIA_TYPES.join(', ')}, got ${shown(mediaType)}`);
  if (!(data instanceof Uint8Array)) throw invalid(`\`data\` to be bytes, got ${typeof data}`);
  if (data.length === 0 || data.length > MAX_IMAGE_BYTES)
    throw invalid(`\`data\` to have 1 to ${MAX_IMAGE_BYTES} bytes, got ${data.length}`);
}

/**
 * Refuses every picture. `who` names the receiver that does not accept images.
 * @throws {ConfigurationError} `IMAGES_NOT_ACCEPTED`
 */
export function refuseImages(who: string): never {
  throw new ConfigurationError(
    'IMAGES_NOT_ACCEPTED',
    `Expected a voice session whose transport takes pictures: ${who} takes none`,
  );
}

function invalid(expected: string): ConfigurationError {
  return new ConfigurationError('INVALID_IMAGE', `Expected ${expected}`);
}
