//! The setting that switches the simplification of plans on or off.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// True if plans are simplified.
static SIMPLIFY: LazyLock<AtomicBool> =
    LazyLock::new(|| AtomicBool::new(std::env::var("WENGERT_SIMPLIFY").map_or(true, |value| value != "0")));

/// Returns true if plans are simplified. Most equal values are then computed once, operations such as a multiplication by 1 are removed, and
/// sums of gradients are rewritten. The last call of [`set_simplification`] decides this. Before the first call, simplification is on unless
/// the environment variable `WENGERT_SIMPLIFY` is `0`.
pub fn simplification() -> bool {
    SIMPLIFY.load(Ordering::Relaxed)
}

/// Switches the simplification of plans on or off, for all threads. If it is off, equal values are computed several times, and operations
/// such as a multiplication by 1 run. Plans still fuse operations, and do not copy expanded operands. With and without simplification, sums
/// and the values computed from them may differ in the last bits. All other values differ at most in the sign of a zero or of a NaN.
pub fn set_simplification(on: bool) {
    SIMPLIFY.store(on, Ordering::Relaxed);
}
