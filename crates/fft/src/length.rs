//! The number of elements of the transforms of a convolution.

/// Returns the smallest even number that is at least `n` and has only the prime factors 2, 3 and 5. Transforms with
/// these numbers of elements are fast. If `n` is below 2, returns 1. If `n` is above 2^40, returns `n`.
pub(crate) fn fast_length(n: usize) -> usize {
    let is_smooth = |mut length: usize| {
        for prime in [2, 3, 5] {
            while length.is_multiple_of(prime) {
                length /= prime;
            }
        }
        length == 1
    };
    // A signal that is longer than this bound does not fit into memory. So the search for a fast length would be wasted time.
    if n > 1 << 40 {
        return n;
    }
    (n.max(1)..).find(|&length| (n < 2 || length.is_multiple_of(2)) && is_smooth(length)).unwrap_or(n)
}
