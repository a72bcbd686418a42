//! One pass over several arrays of one length, the first and some others changed in place.
use crate::Element;
use crate::memory::partition::{self, Partition};
use crate::memory::threads::Schedule;
use crate::scalar::cpu::dispatched;

/// Elements in a part: enough that handing one to another thread costs little beside it.
const PART: usize = 1 << 15;

/// `(x, states) = f(x, input, states)` for each element.
pub(crate) fn update<T: Element, const N: usize>(
    x: &mut [T],
    input: &[T],
    states: [&mut [T]; N],
    f: impl Fn(T, T, [T; N]) -> (T, [T; N]) + Sync,
) {
    let len = x.len();
    assert!(input.len() == len && states.iter().all(|state| state.len() == len), "all have the same length");
    let schedule = Schedule::Sweep { bytes: size_of_val(x) };
    let split = (Partition::chunks(x, PART), states.map(|state| Partition::chunks(state, PART)));
    partition::run(len.div_ceil(PART), schedule, split, |number, (x, states): (&mut [T], [&mut [T]; N])| {
        compiled(Elementwise { input: &input[number * PART..][..x.len()], x, states, f: &f });
    });
}

dispatched! {
    fn compiled<P: Part>(part: P) {
        part.run();
    }
}

/// What is compiled for each instruction set. (A closure might not be inlined.)
trait Part {
    fn run(self);
}

struct Elementwise<'a, T, F, const N: usize> {
    x: &'a mut [T],
    input: &'a [T],
    states: [&'a mut [T]; N],
    f: &'a F,
}

/// Elements at a time, in arrays of their own: the compiler need not ask whether slices overlap.
const BLOCK: usize = 64;

impl<T: Element, F: Fn(T, T, [T; N]) -> (T, [T; N]), const N: usize> Part for Elementwise<'_, T, F, N> {
    #[inline(always)]
    fn run(mut self) {
        let len = self.x.len();
        let whole = len / BLOCK * BLOCK;
        for start in (0..whole).step_by(BLOCK) {
            self.block(start, BLOCK);
        }
        if whole < len {
            self.block(whole, len - whole);
        }
    }
}

impl<T: Element, F: Fn(T, T, [T; N]) -> (T, [T; N]), const N: usize> Elementwise<'_, T, F, N> {
    #[inline(always)]
    fn block(&mut self, start: usize, count: usize) {
        let (mut x, mut input, mut states) = ([T::ZERO; BLOCK], [T::ZERO; BLOCK], [[T::ZERO; BLOCK]; N]);
        x[..count].copy_from_slice(&self.x[start..start + count]);
        input[..count].copy_from_slice(&self.input[start..start + count]);
        for (own, state) in states.iter_mut().zip(&self.states) {
            own[..count].copy_from_slice(&state[start..start + count]);
        }
        each(&mut x, &input, &mut states, self.f);
        self.x[start..start + count].copy_from_slice(&x[..count]);
        for (own, state) in states.iter().zip(&mut self.states) {
            state[start..start + count].copy_from_slice(&own[..count]);
        }
    }
}

#[inline(always)]
fn each<T: Element, const N: usize>(
    x: &mut [T; BLOCK],
    input: &[T; BLOCK],
    states: &mut [[T; BLOCK]; N],
    f: &impl Fn(T, T, [T; N]) -> (T, [T; N]),
) {
    for i in 0..BLOCK {
        let mut before = [T::ZERO; N];
        for k in 0..N {
            before[k] = states[k][i];
        }
        let (value, after) = f(x[i], input[i], before);
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
    fn it_is_its_formula_at_every_length() {
        for len in [0, 1, 63, 64, 65, 1000, PART, PART + 1, 3 * PART - 5] {
            let input: Vec<f64> = (0..len).map(|i| (i % 97) as f64).collect();
            let (mut x, mut state) = (vec![1.0; len], vec![0.5; len]);
            update(&mut x, &input, [&mut state], |x, y, [s]| (x + y * s, [s - y]));
            assert!((0..len).all(|i| x[i] == 1.0 + input[i] * 0.5 && state[i] == 0.5 - input[i]), "{len}");
        }
    }
}
