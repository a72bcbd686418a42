//! One pass over several arrays of one length, the first and some others changed in place.
#![allow(unsafe_code)]

use super::parallel::{self, Pieces};
use crate::Element;

/// Elements in a piece: enough that handing one to another thread costs little beside it.
const PIECE: usize = 1 << 15;

/// `(x, states) = f(x, input, states)` for each element.
pub(crate) fn update<T: Element, const N: usize>(
    x: &mut [T],
    input: &[T],
    states: [&mut [T]; N],
    f: impl Fn(T, T, [T; N]) -> (T, [T; N]) + Sync,
) {
    assert!(input.len() == x.len() && states.iter().all(|state| state.len() == x.len()), "all have the same length");
    if x.len() <= PIECE {
        return piece(x, input, states, f);
    }
    let (pieces, states) = (Pieces::new(x, PIECE), states.map(|state| Pieces::new(state, PIECE)));
    parallel::each(pieces.count(), |number| {
        // SAFETY: every number is handed out once, hence every piece.
        let x = unsafe { pieces.get(number) };
        // SAFETY: as above.
        let states = states.each_ref().map(|state| unsafe { state.get(number) });
        let input = &input[number * PIECE..][..x.len()];
        piece(x, input, states, &f);
    });
}

fn piece<T: Element, const N: usize>(
    x: &mut [T],
    input: &[T],
    states: [&mut [T]; N],
    f: impl Fn(T, T, [T; N]) -> (T, [T; N]),
) {
    let len = x.len();
    let (input, states) = (&input[..len], states.map(|state| &mut state[..len]));
    for i in 0..len {
        let before = std::array::from_fn(|k| states[k][i]);
        let (value, after) = f(x[i], input[i], before);
        x[i] = value;
        for k in 0..N {
            states[k][i] = after[k];
        }
    }
}
