// Read numbers that crowdveil.report.number_packing wrote: seven bits per byte, the sign in the last bit, in base 64.

export function unpacked(text: string, rising = false): Float64Array {
  const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  let count = 0;
  for (const byte of bytes) if (byte < 128) count++;
  const numbers = new Float64Array(count);
  let place = 0, code = 0, factor = 1, last = 0;
  for (const byte of bytes) {
    code += (byte & 127) * factor; // beyond 32 bits a shift would lose the rest
    factor *= 128;
    if (byte < 128) {
      const value = code % 2 ? -(code + 1) / 2 : code / 2;
      last = rising ? last + value : value;
      numbers[place++] = last;
      code = 0;
      factor = 1;
    }
  }
  return numbers;
}

/** Return the offsets of consecutive groups with these counts. */
export function starts(counts: ArrayLike<number>): Int32Array {
  const offsets = new Int32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) offsets[i + 1] = offsets[i] + counts[i];
  return offsets;
}
