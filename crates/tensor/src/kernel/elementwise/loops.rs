//! The loops over a block of elements of which functions of one, two and three operands consist.
//!
//! Like those of [`loops`](crate::kernel::reduce::fold), they count and are inlined. Where a function is passed as a value it may not be: the
//! macros are for those that must.
#![allow(clippy::needless_range_loop)]

use crate::kernel::elementwise::operand::Operand;

/// `out = f(x)`.
#[inline(always)]
pub(crate) fn one<T: Copy, U: Copy>(x: Operand<T>, out: &mut [U], f: impl Fn(T) -> U) -> bool {
    match x {
        Operand::Slice(x) => {
            let x = &x[..out.len()];
            for i in 0..out.len() {
                out[i] = f(x[i]);
            }
        }
        Operand::Splat(x) => {
            if !out.is_empty() {
                out.fill(f(x));
            }
        }
    }
    true
}

/// The body of a function over a block by `$loop`, which is compiled once: of a splat, over a block of one element.
macro_rules! once {
    ($x:ident, $out:ident, |$from:ident, $to:ident| $loop:block) => {{
        let number;
        let ($from, splat) = match $x {
            Operand::Slice(x) => (x, false),
            Operand::Splat(x) => {
                number = [x];
                (&number[..], true)
            }
        };
        let len = if splat { $out.len().min(1) } else { $out.len() };
        let ($from, $to) = (&$from[..len], &mut $out[..len]);
        $loop
        if splat && len == 1 {
            let result = $out[0];
            $out.fill(result);
        }
        true
    }};
}

/// [`one`] for a function that is always inlined: passed as a value it might not be, and would be compiled without the
/// instructions that the caller is allowed.
macro_rules! one_inlined {
    ($x:ident, $out:ident, $f:expr) => {
        once!($x, $out, |from, to| {
            for i in 0..to.len() {
                to[i] = $f(from[i]);
            }
        })
    };
}

/// As [`one_inlined`], by `$fast` over chunks where all arguments are `$ordinary`, and by `$f`, which has the same bits for
/// those, elsewhere.
macro_rules! one_guarded {
    ($x:ident, $out:ident, $ordinary:expr, $fast:expr, $f:expr) => {
        once!($x, $out, |from, to| {
            let (chunks, rest) = from.as_chunks::<64>();
            let (to_chunks, to_rest) = to.as_chunks_mut::<64>();
            for (chunk, to) in chunks.iter().zip(to_chunks) {
                let mut ordinary = true;
                for i in 0..64 {
                    ordinary &= $ordinary(chunk[i]);
                }
                if ordinary {
                    for i in 0..64 {
                        to[i] = $fast(chunk[i]);
                    }
                } else {
                    for i in 0..64 {
                        to[i] = $f(chunk[i]);
                    }
                }
            }
            for i in 0..rest.len() {
                to_rest[i] = $f(rest[i]);
            }
        })
    };
}

/// As [`one_inlined`], by `$fast`, and once more by `$library` where an argument is not `$ordinary`.
macro_rules! one_mended {
    ($x:ident, $out:ident, $ordinary:expr, $fast:expr, $library:expr) => {
        once!($x, $out, |from, to| {
            let mut ordinary = true;
            for i in 0..to.len() {
                ordinary &= $ordinary(from[i]);
                to[i] = $fast(from[i]);
            }
            if !ordinary {
                for i in 0..to.len() {
                    if !$ordinary(from[i]) {
                        to[i] = $library(from[i]);
                    }
                }
            }
        })
    };
}

/// `out = f(x, y)`.
#[inline(always)]
pub(crate) fn two<T: Copy, S: Copy, U: Copy>(
    x: Operand<T>,
    y: Operand<S>,
    out: &mut [U],
    f: impl Fn(T, S) -> U,
) -> bool {
    use Operand::{Slice, Splat};
    let len = out.len();
    match (x, y) {
        (Slice(x), Slice(y)) => {
            let (x, y) = (&x[..len], &y[..len]);
            for i in 0..len {
                out[i] = f(x[i], y[i]);
            }
        }
        (Slice(x), Splat(y)) => {
            let x = &x[..len];
            for i in 0..len {
                out[i] = f(x[i], y);
            }
        }
        (Splat(x), Slice(y)) => {
            let y = &y[..len];
            for i in 0..len {
                out[i] = f(x, y[i]);
            }
        }
        (Splat(x), Splat(y)) => {
            if len > 0 {
                out.fill(f(x, y));
            }
        }
    }
    true
}

/// `out = f(x, y, z)`.
#[inline(always)]
pub(crate) fn three<M: Copy, T: Copy>(
    x: Operand<M>,
    y: Operand<T>,
    z: Operand<T>,
    out: &mut [T],
    f: impl Fn(M, T, T) -> T,
) {
    use Operand::{Slice, Splat};
    match (x, y, z) {
        (Splat(x), y, z) => {
            two(y, z, out, |y, z| f(x, y, z));
        }
        (x, Splat(y), z) => {
            two(x, z, out, |x, z| f(x, y, z));
        }
        (x, y, Splat(z)) => {
            two(x, y, out, |x, y| f(x, y, z));
        }
        (Slice(x), Slice(y), Slice(z)) => {
            let (x, y, z) = (&x[..out.len()], &y[..out.len()], &z[..out.len()]);
            for i in 0..out.len() {
                out[i] = f(x[i], y[i], z[i]);
            }
        }
    }
}

/// Powers, by `$math::pow_ordinary`, and once more by the library where base or exponent is not for it.
macro_rules! power_inlined {
    ($x:ident, $y:ident, $out:ident, $math:ident) => {{
        // What is one number for all is written out once; so there is one loop. Places without a number are ordinary.
        let splat = |operand| if let Operand::Splat(number) = operand { [number; 64] } else { [1.0; 64] };
        let (mut bases, mut exponents) = (splat($x), splat($y));
        for (number, out) in $out.chunks_mut(64).enumerate() {
            let len = out.len();
            if let Operand::Slice(x) = $x {
                bases[..len].copy_from_slice(&x[64 * number..][..len]);
            }
            if let Operand::Slice(y) = $y {
                exponents[..len].copy_from_slice(&y[64 * number..][..len]);
            }
            let (mut powers, mut ordinary) = ([0.0; 64], true);
            // Whole vectors, of what is there or was.
            let width = len.next_multiple_of(16).min(64);
            let (x, y, z) = (&bases[..width], &exponents[..width], &mut powers[..width]);
            for i in 0..width {
                ordinary &= $math::is_power(x[i], y[i]);
                z[i] = $math::pow_ordinary::<FMA>(x[i], y[i]);
            }
            out.copy_from_slice(&powers[..len]);
            if !ordinary {
                for i in 0..len {
                    if !$math::is_power(bases[i], exponents[i]) {
                        out[i] = bases[i].powf(exponents[i]);
                    }
                }
            }
        }
        true
    }};
}

/// [`one`] of a line.
#[inline(always)]
pub(crate) fn one_line<T: Copy, const N: usize>(x: &[T; N], out: &mut [T; N], f: impl Fn(T) -> T) {
    let mut result = *x;
    for i in 0..N {
        result[i] = f(x[i]);
    }
    *out = result;
}

/// [`two`] of lines.
#[inline(always)]
pub(crate) fn two_lines<T: Copy, const N: usize>(x: &[T; N], y: &[T; N], out: &mut [T; N], f: impl Fn(T, T) -> T) {
    let mut result = *x;
    for i in 0..N {
        result[i] = f(x[i], y[i]);
    }
    *out = result;
}

/// Comparisons are the same loop for every type.
macro_rules! compare_body {
    ($op:ident, $x:ident, $y:ident, $out:ident, |$holds:ident| $result:expr) => {
        match $op {
            Compare::Eq => two($x, $y, $out, |x, y| {
                let $holds = x == y;
                $result
            }),
            Compare::Ne => two($x, $y, $out, |x, y| {
                let $holds = x != y;
                $result
            }),
            Compare::Lt => two($x, $y, $out, |x, y| {
                let $holds = x < y;
                $result
            }),
            Compare::Le => two($x, $y, $out, |x, y| {
                let $holds = x <= y;
                $result
            }),
            Compare::Gt => two($x, $y, $out, |x, y| {
                let $holds = x > y;
                $result
            }),
            Compare::Ge => two($x, $y, $out, |x, y| {
                let $holds = x >= y;
                $result
            }),
        }
    };
}

pub(crate) use {compare_body, once, one_guarded, one_inlined, one_mended, power_inlined};
