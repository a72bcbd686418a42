//! The setting that switches the simplification of plans on or off.

use std::sync::atomic::{AtomicU8, Ordering};

/// 0 until the setting is first read or changed. Then it is 1 if simplification is off, and 2 if it is on.
static SIMPLIFY: AtomicU8 = AtomicU8::new(0);

/// Returns true if plans are simplified. Equal values are then computed once, operations such as a multiplication by 1 are removed, and
/// sums of gradients are rewritten. The last call of [`set_simplification`] decides this. Before the first call, simplification is on
/// unless the environment variable `WENGERT_SIMPLIFY` is `0`.
pub fn simplification() -> bool {
    match SIMPLIFY.load(Ordering::Relaxed) {
        0 => {
            let on = std::env::var("WENGERT_SIMPLIFY").map_or(true, |value| value != "0");
            // A setting that a concurrent `set_simplification` has stored is kept.
            let (state, order) = (state_of(on), Ordering::Relaxed);
            SIMPLIFY.compare_exchange(0, state, order, order).map_or_else(|set| set == state_of(true), |_| on)
        }
        state => state == state_of(true),
    }
}

/// Returns the value that [`SIMPLIFY`] has if simplification is on (`on` is true) or off.
fn state_of(on: bool) -> u8 {
    1 + u8::from(on)
}

/// Switches the simplification of plans on or off, for all threads. If it is off, equal values are computed several times, and operations
/// such as a multiplication by 1 run. Plans still fuse operations, and do not copy expanded operands. With and without simplification, sums
/// and the values computed from them may differ in the last bits. All other values differ at most in the sign of a zero or of a NaN.
pub fn set_simplification(on: bool) {
    SIMPLIFY.store(state_of(on), Ordering::Relaxed);
}
