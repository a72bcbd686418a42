//! Tests elementwise operations over every layout against the oracle (simple code for single elements), and on special values of each type.

use std::fmt::Debug;

use rand_pcg::Pcg64;

use crate::engine::elementwise;
use crate::kernel::elementwise::operand::Operand;
use crate::kernel::testing::layouts::{Recipe, Sample, VALUES, generator, repeated};
use crate::kernel::testing::numbers::{self, Expected, Oracle};
use crate::kernel::testing::oracle::{elements, update};
use crate::kernel::testing::support::{Case, assert_bits, check_cases, large_recipes, site, zip};
use crate::ops::{InPlace, TensorLike};
use crate::{Binary, Compare, DType, Element, Error, Layout, Shape, Tensor, Unary};

/// Returns `op(x)`, computed by the block kernel for a block of one element.
fn alone<T: Oracle>(op: Unary, x: T) -> T {
    let mut out = [T::ZERO];
    T::unary(op, Operand::Slice(&[x]), &mut out);
    out[0]
}

fn two_alone<T: Oracle>(op: Binary, x: T, y: T) -> T {
    let mut out = [T::ZERO];
    T::binary(op, Operand::Slice(&[x]), Operand::Slice(&[y]), &mut out);
    out[0]
}

/// The number of elements for which the kernels also run on a block of one element, if the oracle's result is exact. Later elements have
/// the same values again, so their blocks of one element would repeat the same comparisons.
const ALONE: usize = 2 * VALUES;

/// Asserts that each result is one that the oracle, the simple code of the tests, allows. Also asserts that a single element gives the same
/// bits as a block. `operands` has the operands of each element, and `alone` runs the kernel on one element.
#[track_caller]
fn assert_allowed<T: Oracle, X: Copy>(
    got: &Tensor<T>,
    operands: &[X],
    expected: impl Fn(X) -> Option<Expected<T>>,
    alone: impl Fn(X) -> T,
    what: impl Debug,
) {
    let got = got.to_vec();
    assert_eq!(got.len(), operands.len());
    for (place, &operand) in operands.iter().enumerate() {
        let (got, expected) = (got[place], expected(operand));
        assert!(
            expected.is_some_and(|it| it.allows(got)),
            "{what:?} of {} at {place}: {got:?}, not {expected:?}",
            T::DTYPE
        );
        if place < ALONE || !matches!(expected, Some(Expected::Exact(_))) {
            let alone = alone(operand);
            assert_eq!(got.bits(), alone.bits(), "{what:?} of {}: {got:?} at {place}, alone {alone:?}", T::DTYPE);
        }
    }
}

/// Asserts that the oracle, the simple code of the tests, does not have an operation. Tests call this function for operations that the
/// kernels do not have.
#[track_caller]
fn assert_undefined<T: Oracle>(error: &Error, expected: Option<Expected<T>>, what: impl Debug) {
    assert!(matches!(error, Error::ElementType { .. }), "{error}");
    assert!(expected.is_none(), "{what:?} is missing for {}", T::DTYPE);
}

fn exact<T: Oracle>(op: Binary, x: T, y: T) -> T {
    T::of_two(op, x, y).expect("every type has it").exact()
}

/// An element as a number that is converted by Rust's `as`. Elements of i64 are `Whole`, so that no digits are lost. Elements of all other
/// types are `Real`, because f64 represents them exactly.
enum Numeral {
    Whole(i128),
    Real(f64),
}

/// For each element type, the function that converts numbers to this type.
mod casts {
    use super::Numeral::{self, Real, Whole};

    macro_rules! casts {
        ($($type:ident),*) => {$(
            pub(super) fn $type(numbers: &[Numeral]) -> Vec<$type> {
                numbers.iter().map(|number| match *number { Whole(x) => x as $type, Real(x) => x as $type }).collect()
            }
        )*};
    }
    casts!(f32, f64, i64, u8);
}

/// Operands of one shape for elementwise operations. Integer divisors are not 0.
struct Operands<T: Element> {
    x: Tensor<T>,
    y: Tensor<T>,
    mask: Tensor<bool>,
}

impl<T: Oracle> Operands<T> {
    fn new(shape: &Shape, recipes: [&Recipe; 3], rng: &mut Pcg64) -> Self {
        let integers = T::DTYPE.is_integer();
        let x = recipes[0].tensor(shape, repeated(|| T::any(rng)));
        let y = recipes[1].tensor(
            shape,
            repeated(|| match T::any(rng) {
                zero if integers && zero == T::ZERO => T::ONE,
                y => y,
            }),
        );
        Operands { x, y, mask: recipes[2].tensor(shape, repeated(|| bool::any(rng))) }
    }

    fn check(&self, unary_ops: &[Unary], binary_ops: &[Binary], compare_ops: &[Compare]) {
        let Operands { x, y, mask } = self;
        let (ex, ey, em) = (elements(x.source()), elements(y.source()), elements(mask.source()));
        for &op in unary_ops {
            match x.apply_unary(op, site()) {
                Ok(got) => assert_allowed(&got, &ex, |x| T::of_one(op, x), |x| alone(op, x), op),
                Err(error) => assert_undefined(&error, T::of_one(op, T::ONE), op),
            }
        }
        let pairs = zip(&ex, &ey, |x, y| (x, y));
        for &op in binary_ops {
            match x.apply_binary(op, y, site()) {
                Ok(got) => {
                    assert_allowed(&got, &pairs, |(x, y)| T::of_two(op, x, y), |(x, y)| two_alone(op, x, y), op);
                }
                Err(error) => assert_undefined(&error, T::of_two(op, T::ONE, T::ONE), op),
            }
        }
        for &op in compare_ops {
            assert_bits(
                &x.apply_compare(op, y, site()).unwrap(),
                &zip(&ex, &ey, |x, y| numbers::compare(op, x, y)),
                op,
            );
        }
        let chosen = zip(&em, &pairs, |mask, (x, y)| if mask { x } else { y });
        assert_bits(&Tensor::apply_select(mask, x, y, site()).unwrap(), &chosen, "select");
        assert_bits(&x.contiguous_copy(site()).unwrap(), &ex, "copy");
    }

    fn check_casts(&self) {
        let ex = elements(self.x.source());
        let numbers: Vec<Numeral> = ex
            .iter()
            .map(|x| if T::DTYPE == DType::I64 { Numeral::Whole(x.to_i64().into()) } else { Numeral::Real(x.to_f64()) })
            .collect();
        macro_rules! casts {
            ($($type:ident),*) => {$(
                assert_bits(&self.x.cast::<$type>(), &casts::$type(&numbers), stringify!($type));
            )*};
        }
        casts!(f32, f64, i64, u8);
        let truths: Vec<bool> = ex.iter().map(|&x| x != T::ZERO).collect();
        assert_bits(&self.x.cast::<bool>(), &truths, "bool");
    }
}

fn elementwise<T: Oracle>(shape: &Shape, recipes: [&Recipe; 3], seed: u64) {
    let operands = Operands::<T>::new(shape, recipes, &mut generator(seed));
    operands.check(Unary::ALL, Binary::ALL, Compare::ALL);
    operands.check_casts();
}

/// Tests operations in place on a tensor that is a part of a larger buffer. The other elements of the buffer must not change.
fn in_place<T: Oracle>(shape: &Shape, recipes: [&Recipe; 2], seed: u64) {
    let rng = &mut generator(seed);
    let (window, len) = recipes[0].clone().injective().layout(shape);
    let before: Vec<T> = std::iter::repeat_with(repeated(|| T::any(rng))).take(len).collect();
    let y = recipes[1].tensor(shape, repeated(|| T::any(rng)));
    for (op, name) in [(Some(Binary::Maximum), "maximum"), (Some(Binary::Mul), "mul"), (None, "assign")] {
        let (mut got, mut expected) = (before.clone(), before.clone());
        match op {
            Some(op) => elementwise::update(op, &mut got, &window, y.source()),
            None => elementwise::assign(&mut got, &window, y.source()),
        }
        update(&mut expected, &window, y.source(), |x, y| op.map_or(y, |op| exact(op, x, y)));
        assert_bits(&Tensor::from(got), &expected, name);
    }
    // Runs one of these operations on a tensor whose buffer another tensor also holds. So the operation must copy the elements first.
    let mut x = Tensor::from(before.clone()).with_layout(window.clone());
    let held = x.clone();
    let expected = zip(&elements(x.source()), &elements(y.source()), |x, y| exact(Binary::Maximum, x, y));
    x.put_binary(Binary::Maximum, &y, site()).unwrap();
    assert_bits(&x, &expected, "maximum_");
    assert_bits(&held.with_layout(Layout::contiguous(Shape::from([len]))), &before, "what was held");
}

#[test]
fn elementwise_kernels_equal_the_oracle() {
    check_cases(&|Case { shape, recipes, seed, .. }| {
        for check in
            [elementwise::<f32>, elementwise::<f64>, elementwise::<i64>, elementwise::<u8>, elementwise::<bool>]
        {
            check(shape, recipes.each_ref(), *seed);
        }
    });
}

#[test]
fn in_place_kernels_equal_the_oracle() {
    check_cases(&|Case { shape, recipes: [a, b, _], seed, .. }| {
        for check in [in_place::<f32>, in_place::<f64>, in_place::<i64>, in_place::<u8>, in_place::<bool>] {
            check(shape, [a, b], *seed);
        }
    });
}

#[test]
fn blocks_join_at_every_length() {
    let recipes = large_recipes();
    for n in [127usize, 128, 129, 1023, 1024, 1025, 4097, 16_385, 65_535, 65_536, 65_537, 70_001] {
        let mut shapes = vec![Shape::from([n]), Shape::from([2, n]), Shape::from([n, 3])];
        if n < 2000 {
            shapes.push(Shape::from([65, n]));
            shapes.push(Shape::from([3, 23, n]));
        }
        for shape in shapes {
            let mut seen = Vec::new();
            for (i, a) in recipes.iter().enumerate() {
                let (b, c) = (&recipes[(i + 2) % recipes.len()], &recipes[(i + 3) % recipes.len()]);
                // Several recipes give the same layouts of a long dimension. Equal layouts are tested once.
                let layouts = [a, b, c].map(|recipe| recipe.layout(&shape));
                if seen.contains(&layouts) {
                    continue;
                }
                seen.push(layouts);
                let floats = Operands::<f32>::new(&shape, [a, b, c], &mut generator(n as u64));
                floats.check(&[Unary::Neg], &[Binary::Add], &[Compare::Lt]);
                let bytes = Operands::<u8>::new(&shape, [b, a, c], &mut generator(n as u64));
                bytes.check(&[Unary::Not], &[Binary::Sub], &[]);
                in_place::<i64>(&shape, [a, b], n as u64);
            }
        }
    }
}

/// Checks that operations that move elements keep all bits of a NaN: its sign, its payload, and the bit that makes it signal.
#[test]
fn moved_elements_keep_their_bits() {
    macro_rules! check {
        ($($type:ident)*) => {$(
            let quiet = $type::NAN.to_bits();
            let signals = $type::INFINITY.to_bits() | 5;
            let bits = [quiet, quiet | 1, quiet | 0x2f_0001, !0, signals, (-$type::from_bits(signals)).to_bits(), 1];
            for (shape, recipe) in [[7usize, 300], [1100, 2], [3, 5]].iter().flat_map(|shape| {
                large_recipes().into_iter().map(move |recipe| (Shape::from(shape), recipe))
            }) {
                let mut number = 0;
                let x = recipe.tensor(&shape, || {
                    number += 1;
                    $type::from_bits(bits[number % bits.len()])
                });
                let raw = |x: &Tensor<$type>| elements(x.source()).iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                let expected = raw(&x);
                assert_eq!(raw(&x.contiguous_copy(site()).unwrap()), expected);
                assert_eq!(raw(&Tensor::apply_cat(&[x.clone(), x.clone()], 0, site()).unwrap())[..expected.len()], expected);
                let mask = Tensor::full(&shape, true);
                assert_eq!(raw(&Tensor::apply_select(&mask, &x, &Tensor::zeros(&shape), site()).unwrap()), expected);
                let every: Vec<i64> = (0..shape[0] as i64).collect();
                assert_eq!(raw(&x.apply_index_select(0, &Tensor::from(every), site()).unwrap()), expected);
                let every = Tensor::<i64>::from_fn(&shape, |index| (index[0] * shape[1] + index[1]) as i64);
                assert_eq!(raw(&x.apply_take(&every, site()).unwrap()), expected);
                let mut written = Tensor::zeros(&shape);
                written.put(x.clone(), site()).unwrap();
                assert_eq!(raw(&written), expected);
            }
        )*};
    }
    check!(f32 f64);
}

/// Checks the largest distance between a function in f32 and the same function in f64, in units in the last place of the f32 result. A
/// correctly rounded result has a distance of at most 1/2. The standard library may call the f32 functions of the GNU C library. They need
/// not be correctly rounded, so the bound is greater than 1/2.
#[test]
fn functions_in_f32_are_near_those_in_f64() {
    let rng = &mut generator(3);
    let mut inputs: Vec<f32> = std::iter::repeat_with(|| f32::any(rng)).take(2000).collect();
    inputs.extend((-4000i16..=4000).map(|i| f32::from(i) / 400.0));
    inputs.extend((-120..=120).map(|i| 2f32.powi(i)));
    for &op in Unary::ALL.iter().filter(|&&op| op != Unary::Not) {
        let worst = inputs.iter().map(|&x| {
            let (single, double) = (alone(op, x), alone(op, f64::from(x)));
            let rounded = double as f32;
            if single.bits() == rounded.bits() || single == rounded {
                return 0.0;
            }
            let ulp = f64::from(rounded.abs().next_up()) - f64::from(rounded.abs());
            ((f64::from(single) - double).abs() / ulp, x).0
        });
        let worst = worst.fold(0.0, |worst: f64, error| if error > worst || error.is_nan() { error } else { worst });
        // All functions have the same bound, except `ndtr`, which has a larger one.
        let bound = if op == Unary::Ndtr { 5.0 } else { 3.0 };
        assert!(worst <= bound, "{op:?}: {worst} ulp");
    }
}

#[test]
fn floats_at_edges() {
    use Binary::*;
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let table = [
        (Maximum, nan, 1.0, nan),
        (Maximum, 1.0, nan, nan),
        (Minimum, nan, 1.0, nan),
        (Minimum, 1.0, nan, nan),
        (Fmax, nan, 1.0, 1.0),
        (Fmin, 1.0, nan, 1.0),
        (Fmax, nan, nan, nan),
        (Pow, 0.0, 0.0, 1.0),
        (Pow, 1.0, nan, 1.0),
        (Pow, nan, 0.0, 1.0),
        (Pow, -8.0, 1.0 / 3.0, nan),
        (Pow, -inf, 2.0, inf),
        (Pow, -0.0, 2.0, 0.0),
        (Pow, nan, 2.0, nan),
        (Pow, -inf, 3.0, -inf),
        (Pow, -0.0, 3.0, -0.0),
        (Pow, -2f64.powi(600), 3.0, -inf),
        (Pow, nan, 3.0, nan),
        (Pow, -2.0, 5.0, -32.0),
        (Pow, -2.0, -4.0, 0.0625),
        (Pow, -0.0, -3.0, -inf),
        (Pow, -0.0, -1.0, -inf),
        (Pow, -inf, -1.0, -0.0),
        (Pow, 49.0, -1.0, 1.0 / 49.0),
        (Fmod, -7.0, 3.0, -1.0),
        (Fmod, 7.0, -3.0, 1.0),
        (Fmod, 1.0, 0.0, nan),
        (Fmod, -0.0, 3.0, -0.0),
        (Fmod, 1.0, 0.1, 0.09999999999999995),
        (Fmod, 1e300, 7.0, 1.0),
        (Remainder, -7.0, 3.0, 2.0),
        (Remainder, 7.0, -3.0, -2.0),
        (Remainder, -3.0, inf, inf),
        (Remainder, 1.0, 0.0, nan),
        (Remainder, 1.0, 0.1, 0.09999999999999995),
        (FloorDivide, -7.0, 3.0, -3.0),
        (FloorDivide, 7.0, -3.0, -3.0),
        (FloorDivide, -3.0, inf, -1.0),
        (FloorDivide, inf, 3.0, nan),
        (FloorDivide, 1.0, 0.0, inf),
        (FloorDivide, -0.0, 3.0, -0.0),
        // The quotient of 1 and the number nearest to 0.1 is below 10, but it is rounded to 10.
        (FloorDivide, 1.0, 0.1, 9.0),
        (Hypot, inf, nan, inf),
        (Hypot, 0.0, -0.0, 0.0),
        (Hypot, 3.0 * 2f64.powi(-600), 4.0 * 2f64.powi(-600), 5.0 * 2f64.powi(-600)),
        (Hypot, 3.0 * 2f64.powi(600), 4.0 * 2f64.powi(600), 5.0 * 2f64.powi(600)),
        (Copysign, 3.0, -0.0, -3.0),
        (Nextafter, 1.0, inf, 1.0 + f64::EPSILON),
        (Nextafter, 0.0, -1.0, -f64::from_bits(1)),
        (Atan2, -0.0, -1.0, -std::f64::consts::PI),
    ];
    for (op, x, y, expected) in table {
        assert_eq!(two_alone(op, x, y).bits(), expected.bits(), "{op:?} {x} {y}");
        assert!(f64::of_two(op, x, y).is_some_and(|it| it.allows(expected)), "{op:?} {x} {y}, by the oracle");
    }
    let table = [
        (Unary::Sign, nan, 0.0),
        (Unary::Sign, -0.0, 0.0),
        (Unary::Relu, -0.0, -0.0),
        (Unary::Relu, nan, nan),
        (Unary::Relu, -1.0, 0.0),
        (Unary::Round, 2.5, 2.0),
        (Unary::Round, -3.5, -4.0),
        (Unary::Sqrt, -0.0, -0.0),
        (Unary::Log, 0.0, -inf),
        (Unary::Sigmoid, -inf, 0.0),
        (Unary::Sigmoid, 800.0, 1.0),
        (Unary::Tanh, inf, 1.0),
        (Unary::Erfinv, 1.0, inf),
        (Unary::Lgamma, 0.0, inf),
    ];
    for (op, x, expected) in table {
        assert_eq!(alone(op, x).bits(), expected.bits(), "{op:?} {x}");
        assert!(f64::of_one(op, x).is_some_and(|it| it.allows(expected)), "{op:?} {x}, by the oracle");
    }
}

#[test]
fn integers_at_edges() {
    use Binary::*;
    let (max, min) = (i64::MAX, i64::MIN);
    let table = [
        (Add, max, 1, min),
        (Mul, min, -1, min),
        (Div, -7, 2, -3),
        (Div, min, -1, min),
        (FloorDivide, -7, 2, -4),
        (FloorDivide, 7, -2, -4),
        (Fmod, -7, 2, -1),
        (Fmod, min, -1, 0),
        (Remainder, -7, 2, 1),
        (Remainder, 7, -2, -1),
        (Pow, 2, 62, 1 << 62),
        (Pow, 3, 41, 3i64.wrapping_pow(41)),
        (Pow, 2, -1, 0),
        (Pow, -1, -3, -1),
        (Pow, 1, min, 1),
        (ShiftLeft, 1, 63, min),
        (ShiftLeft, 1, 64, 0),
        (ShiftRight, -8, 1, -4),
        (ShiftRight, -8, 100, -1),
        (Gcd, -12, 18, 6),
        (Lcm, -4, 6, 12),
        (Lcm, 0, 0, 0),
    ];
    for (op, x, y, expected) in table {
        assert_eq!([two_alone(op, x, y), exact(op, x, y)], [expected; 2], "{op:?} {x} {y}");
    }
    let table = [
        (Sub, 3, 5, 254),
        (Remainder, 200, 7, 4),
        (FloorDivide, 200, 7, 28),
        (Pow, 3, 6, (729 % 256) as u8),
        (ShiftRight, 200, 9, 0),
        (Lcm, 200, 30, (600 % 256) as u8),
    ];
    for (op, x, y, expected) in table {
        assert_eq!([two_alone::<u8>(op, x, y), exact(op, x, y)], [expected; 2], "{op:?} {x} {y}");
    }
}

#[test]
fn an_integer_is_not_divided_by_zero() {
    let (x, zero) = (Tensor::from([4i64, 6]), Tensor::from([2i64, 0]));
    for op in [Binary::Div, Binary::Fmod, Binary::Remainder, Binary::FloorDivide] {
        assert_eq!(x.apply_binary(op, &zero, site()).unwrap_err().sentence(), "ZeroDivisionError");
    }
}

#[test]
fn the_oracle_refuses_what_is_wrong() {
    let near = f32::of_one(Unary::Exp, 1.0).unwrap();
    let e = std::f32::consts::E;
    assert!(near.allows(e) && near.allows(e.next_up()));
    assert!(!near.allows(e + 8.0 * f32::EPSILON) && !near.allows(f32::NAN) && !near.allows(f32::INFINITY));
    let exact = f32::of_two(Binary::Add, 0.1, 0.2).unwrap();
    assert!(exact.allows(0.1 + 0.2) && !exact.allows((0.1f32 + 0.2).next_up()));
    assert!(!f64::of_one(Unary::Neg, 0.0).unwrap().allows(0.0));
}
