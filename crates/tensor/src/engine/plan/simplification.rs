//! Whether plans are simplified.

use std::sync::atomic::{AtomicU8, Ordering};

/// 0 until it is known; 1 off, 2 on.
static SIMPLIFY: AtomicU8 = AtomicU8::new(0);

/// Whether evaluation leaves out what changes nothing (a factor of 1) and computes equal values once. On, unless the
/// environment variable `WENGERT_SIMPLIFY` is `0` or [`set_simplification`] has switched it off.
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

/// Switches simplification on or off, for all threads. It changes no value but the sign of a NaN; this is for those who want
/// to see every recorded operation run.
pub fn set_simplification(on: bool) {
    SIMPLIFY.store(1 + u8::from(on), Ordering::Relaxed);
}
