//! Updates an array and its states from an input, in one pass. In an optimiser's step, the array is a parameter, the input is its gradient,
//! and a state is for example the mean gradient.

use crate::Element;
use crate::memory::partition::{self, Partition};
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;
use crate::thresholds::parts::{STEP_BLOCK, STEP_PART};

/// A function that updates one part of the arrays. It gets the parts of the first array, of the input and of the states.
pub(crate) type UpdatePart<'f, T, const N: usize> = dyn Fn(&mut [T], &[T], &mut [&mut [T]; N]) + Sync + 'f;

/// Calls `part` for each part of the arrays, on several threads if the arrays are long. This function does not depend on the formula of the
/// update, so it is compiled once for each element type and number of states.
pub(crate) fn update<T: Element, const N: usize>(
    x: &mut [T],
    input: &[T],
    states: [&mut [T]; N],
    part: &UpdatePart<'_, T, N>,
) {
    let (len, bytes) = (x.len(), size_of_val(x));
    assert!(input.len() == len && states.iter().all(|state| state.len() == len), "all have the same length");
    let parts = (Partition::chunks(x, STEP_PART), states.map(|state| Partition::chunks(state, STEP_PART)));
    partition::run(len.div_ceil(STEP_PART), Schedule::Sweep { bytes }, parts, |number, (x, mut states)| {
        let input = &input[number * STEP_PART..][..x.len()];
        part(x, input, &mut states);
    });
}

dispatched! {
    /// Computes `(x, states) = f(x, input, states)` for each index of the arrays. Callers pass one part of longer arrays.
    pub(crate) fn update_part<T: Element, F: Fn(T, T, [T; N]) -> (T, [T; N]); const N: usize>(
        x: &mut [T],
        input: &[T],
        states: &mut [&mut [T]; N],
        f: &F,
    ) {
        let whole = x.len() / STEP_BLOCK * STEP_BLOCK;
        for start in (0..whole).step_by(STEP_BLOCK) {
            update_block(start, STEP_BLOCK, x, input, states, f);
        }
        update_block(whole, x.len() - whole, x, input, states, f);
    }
}

/// Updates `count` elements, at most [`STEP_BLOCK`]. The compiler makes one version for a whole block and one for fewer elements. So a
/// whole block is copied by a few vector instructions. `f` is not called for the unused elements of the local arrays.
#[inline(always)]
fn update_block<T: Element, const N: usize>(
    start: usize,
    count: usize,
    x: &mut [T],
    input: &[T],
    states: &mut [&mut [T]; N],
    f: &impl Fn(T, T, [T; N]) -> (T, [T; N]),
) {
    let range = start..start + count;
    let zeros = [T::ZERO; STEP_BLOCK];
    let (mut own, mut inputs, mut own_states) = (zeros, zeros, [zeros; N]);
    own[..count].copy_from_slice(&x[range.clone()]);
    inputs[..count].copy_from_slice(&input[range.clone()]);
    for (own, state) in own_states.iter_mut().zip(&*states) {
        own[..count].copy_from_slice(&state[range.clone()]);
    }
    update_elements(count, &mut own, &inputs, &mut own_states, f);
    x[range.clone()].copy_from_slice(&own[..count]);
    for (own, state) in own_states.iter().zip(states) {
        state[range.clone()].copy_from_slice(&own[..count]);
    }
}

#[inline(always)]
fn update_elements<T: Element, const N: usize>(
    count: usize,
    x: &mut [T; STEP_BLOCK],
    input: &[T; STEP_BLOCK],
    states: &mut [[T; STEP_BLOCK]; N],
    f: &impl Fn(T, T, [T; N]) -> (T, [T; N]),
) {
    for i in 0..count {
        let (value, after) = f(x[i], input[i], std::array::from_fn(|k| states[k][i]));
        x[i] = value;
        for k in 0..N {
            states[k][i] = after[k];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_equal_their_formula_at_every_length() {
        for len in [0, 1, 63, 64, 65, 1000, STEP_PART, STEP_PART + 1, 3 * STEP_PART - 5] {
            let input: Vec<f64> = (0..len).map(|i| (i % 97) as f64).collect();
            let (mut x, mut state) = (vec![1.0; len], vec![0.5; len]);
            let f = |x, y, [s]: [f64; 1]| (x + y * s, [s - y]);
            update(&mut x, &input, [&mut state], &|x, y, states| update_part(x, y, states, &f));
            assert!((0..len).all(|i| x[i] == 1.0 + input[i] * 0.5 && state[i] == 0.5 - input[i]), "{len}");
        }
    }

    #[test]
    fn the_function_runs_once_for_each_element() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        for len in [0, 1, 3, 64, 67, STEP_PART + 3] {
            let calls = AtomicUsize::new(0);
            let (mut x, y) = (vec![12i64; len], vec![5i64; len]);
            let f = |x, y, []: [i64; 0]| {
                calls.fetch_add(1, Ordering::Relaxed);
                (x / y, [])
            };
            update(&mut x, &y, [], &|x, y, states| update_part(x, y, states, &f));
            assert_eq!((calls.into_inner(), x), (len, vec![2; len]));
        }
    }
}
