// Sums over lists of whole numbers in the data of a report.

/** Return the offsets of consecutive groups with these counts. */
export function starts(counts: ArrayLike<number>): Int32Array {
  const offsets = new Int32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) offsets[i + 1] = offsets[i] + counts[i];
  return offsets;
}

/** Return numbers that were written as differences of successive ones. */
export const summed = (differences: number[]): Int32Array => starts(differences).subarray(1);
