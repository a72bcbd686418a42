//! The setting that switches the simplification of plans on or off.

use std::sync::atomic::{AtomicU8, Ordering};

/// 0 until the setting is first read. Then it is 1 if simplification is off, and 2 if it is on.
static SIMPLIFY: AtomicU8 = AtomicU8::new(0);

/// Returns true if plans are simplified. Equal values are then computed once, operations such as a multiplication by 1 are removed, and
/// sums of gradients are rewritten. Simplification is on, unless the environment variable `WENGERT_SIMPLIFY` is `0` or
/// [`set_simplification`] has switched it off.
pub fn simplification() -> bool {
    match SIMPLIFY.load(Ordering::Relaxed) {
        0 => {
            let on = std::env::var("WENGERT_SIMPLIFY").map_or(true, |value| value != "0");
            set_simplification(on);
            on
        }
        state => state == 2,
    }
}

/// Switches the simplification of plans on or off, for all threads. If it is off, every recorded operation runs as it was recorded. Sums of
/// gradients may then differ in the last bits; all other values differ at most in the sign of a NaN.
pub fn set_simplification(on: bool) {
    SIMPLIFY.store(1 + u8::from(on), Ordering::Relaxed);
}
