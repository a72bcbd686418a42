//! What every kernel computes, slow and obvious: loops over indices, each element found through
//! [`Layout::position`](crate::Layout::position). The specification of the kernels, and the oracle of their tests.
//!
//! Elementwise, it applies the operation to one element at a time; what an operation is of a number is tested by
//! tables.

use crate::kernel::elementwise::operand::Operand;
use crate::kernel::strided::Source;
use crate::scalar::instruction::{Binary, Compare, Reduction, Unary};
use crate::{Element, Layout, Shape};

/// Every index of `shape`, in row-major order.
fn for_indices(shape: &[usize], mut visit: impl FnMut(&[usize])) {
    let mut index = vec![0; shape.len()];
    for _ in 0..shape.iter().product() {
        visit(&index);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

fn at<T: Copy>(x: Source<T>, index: &[usize]) -> T {
    x.data[x.layout.position(index).expect("an index of the shape")]
}

/// The elements in row-major order.
fn elements<T: Copy>(x: Source<T>) -> Vec<T> {
    let mut elements = Vec::new();
    for_indices(x.layout.shape(), |index| elements.push(at(x, index)));
    elements
}

fn unary<T: Element>(op: Unary, x: T) -> T {
    let mut out = [T::ZERO];
    assert!(T::unary(op, Operand::Slice(&[x]), &mut out));
    out[0]
}

fn binary<T: Element>(op: Binary, x: T, y: T) -> T {
    let mut out = [T::ZERO];
    assert!(T::binary(op, Operand::Slice(&[x]), Operand::Slice(&[y]), &mut out));
    out[0]
}

fn compare<T: Element>(op: Compare, x: T, y: T) -> bool {
    match op {
        Compare::Eq => x == y,
        Compare::Ne => x != y,
        Compare::Lt => x < y,
        Compare::Le => x <= y,
        Compare::Gt => x > y,
        Compare::Ge => x >= y,
    }
}

fn combine<T: Element>(op: Reduction, x: T, y: T) -> T {
    let mut total = [x];
    assert!(T::accumulate(op, &mut total, &[y]));
    total[0]
}

/// The elements that each result of a reduction over `axes` is made of, results in row-major order.
fn columns<T: Copy>(x: Source<T>, axes: &[usize]) -> Vec<Vec<T>> {
    let shape = x.layout.shape();
    let kept: Vec<usize> = (0..shape.rank()).map(|axis| if axes.contains(&axis) { 1 } else { shape[axis] }).collect();
    let line: Vec<usize> = (0..shape.rank()).map(|axis| if axes.contains(&axis) { shape[axis] } else { 1 }).collect();
    let mut columns = Vec::new();
    for_indices(&kept, |outer| {
        let mut column = Vec::new();
        for_indices(&line, |inner| {
            let index: Vec<usize> = outer.iter().zip(inner).map(|(outer, inner)| outer + inner).collect();
            column.push(at(x, &index));
        });
        columns.push(column);
    });
    columns
}

fn reduce<T: Element>(op: Reduction, column: &[T]) -> T {
    let (first, rest) = match column.split_first() {
        Some((&first, rest)) => (first, rest),
        None => return T::identity(op).unwrap_or(T::ZERO),
    };
    rest.iter().fold(first, |total, &x| combine(op, total, x))
}

/// Position of the first largest or smallest; the first NaN wins.
fn arg<T: Element>(largest: bool, column: &[T]) -> i64 {
    let is_nan = |x: T| x.partial_cmp(&x).is_none();
    if let Some(position) = column.iter().position(|&x| is_nan(x)) {
        return position as i64;
    }
    let beats = |x: T, y: T| if largest { x > y } else { x < y };
    column.iter().position(|&x| !column.iter().any(|&y| beats(y, x))).expect("a column has elements") as i64
}

/// The rows and columns whose products each element of a matrix product sums up, in row-major order.
fn pairs<T: Copy>(x: Source<T>, y: Source<T>) -> Vec<Vec<(T, T)>> {
    let (left, right) = (x.layout.shape(), y.layout.shape());
    let rank = left.rank();
    let mut result = left.clone();
    result[rank - 1] = right[rank - 1];
    let mut pairs = Vec::new();
    for_indices(&result, |index| {
        let (mut row, mut column) = (index.to_vec(), index.to_vec());
        let products = (0..left[rank - 1]).map(|l| {
            row[rank - 1] = l;
            column[rank - 2] = l;
            (at(x, &row), at(y, &column))
        });
        pairs.push(products.collect());
    });
    pairs
}

/// The element at `position` of the row-major order.
fn nth<T: Copy>(x: Source<T>, position: usize) -> T {
    let mut index = vec![0; x.layout.shape().rank()];
    let mut rest = position;
    for axis in (0..index.len()).rev() {
        index[axis] = rest % x.layout.shape()[axis];
        rest /= x.layout.shape()[axis];
    }
    at(x, &index)
}

/// `out[window position] = f(out[window position], x)` for each element of `x`, in row-major order.
fn update<T: Element>(out: &mut [T], window: &Layout, x: Source<T>, f: impl Fn(T, T) -> T) {
    for_indices(window.shape(), |index| {
        let place = &mut out[window.position(index).expect("an index of the shape")];
        *place = f(*place, at(x, index));
    });
}

mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use rand_pcg::Pcg64;

    use super::*;
    use crate::engine::map;
    use crate::kernel::gather;
    use crate::kernel::reduce::{arg as kernel_arg, strided as kernel_reduce};
    use crate::kernel::testing::layouts::{AxisRecipe, Recipe, Sample, generator, recipes, shapes};
    use crate::ops::{InPlace, TensorLike};
    use crate::shape::error::{Error, Site};
    use crate::shape::view::View;
    use crate::{DType, Float, Tensor};

    fn site() -> Site {
        Site::here("test")
    }

    #[track_caller]
    fn assert_bits<T: Sample>(got: &Tensor<T>, expected: &[T], what: impl std::fmt::Debug) {
        let bits = |values: &[T]| values.iter().map(|&x| x.bits()).collect::<Vec<_>>();
        let got = got.to_vec();
        if bits(&got) != bits(expected) {
            let place = std::iter::zip(&got, expected).position(|(x, y)| x.bits() != y.bits());
            panic!("{what:?} of {}: at {place:?} of {} and {}", T::DTYPE, got.len(), expected.len());
        }
    }

    fn zip<T: Copy, S: Copy, U>(x: &[T], y: &[S], f: impl Fn(T, S) -> U) -> Vec<U> {
        assert_eq!(x.len(), y.len());
        x.iter().zip(y).map(|(&x, &y)| f(x, y)).collect()
    }

    /// Operands of one shape for elementwise operations; integer divisors are not 0.
    struct Operands<T: Element> {
        x: Tensor<T>,
        y: Tensor<T>,
        mask: Tensor<bool>,
    }

    impl<T: Sample> Operands<T> {
        fn new(shape: &Shape, recipes: [&Recipe; 3], rng: &mut Pcg64) -> Self {
            let integers = matches!(T::DTYPE, DType::I64 | DType::U8);
            let x = recipes[0].tensor(shape, || T::any(rng));
            let y = recipes[1].tensor(shape, || match T::any(rng) {
                zero if integers && zero == T::ZERO => T::ONE,
                y => y,
            });
            Operands { x, y, mask: recipes[2].tensor(shape, || bool::any(rng)) }
        }

        fn check(&self, unary_ops: &[Unary], binary_ops: &[Binary], compare_ops: &[Compare]) {
            let Operands { x, y, mask } = self;
            let (ex, ey, em) = (elements(x.source()), elements(y.source()), elements(mask.source()));
            for &op in unary_ops {
                match x.apply_unary(op, site()) {
                    Ok(got) => assert_bits(&got, &ex.iter().map(|&x| unary(op, x)).collect::<Vec<_>>(), op),
                    Err(error) => assert!(matches!(error, Error::ElementType { .. }), "{error}"),
                }
            }
            for &op in binary_ops {
                match x.apply_binary(op, y, site()) {
                    Ok(got) => assert_bits(&got, &zip(&ex, &ey, |x, y| binary(op, x, y)), op),
                    Err(error) => assert!(matches!(error, Error::ElementType { .. }), "{error}"),
                }
            }
            for &op in compare_ops {
                assert_bits(&x.apply_compare(op, y, site()).unwrap(), &zip(&ex, &ey, |x, y| compare(op, x, y)), op);
            }
            let chosen = zip(&em, &zip(&ex, &ey, |x, y| (x, y)), |mask, (x, y)| if mask { x } else { y });
            assert_bits(&Tensor::apply_select(mask, x, y, site()).unwrap(), &chosen, "select");
            assert_bits(&x.copied(site()).unwrap(), &ex, "copy");
        }

        fn check_casts(&self) {
            let ex = elements(self.x.source());
            // Numbers as `as` converts them: integers exactly, floats by value.
            let exact = |x: T| if T::DTYPE == DType::I64 { i128::from(x.to_i64()) } else { 0 };
            let whole = T::DTYPE == DType::I64;
            macro_rules! casts {
                ($($type:ident),*) => {$(
                    let expected: Vec<$type> =
                        ex.iter().map(|&x| if whole { exact(x) as $type } else { x.to_f64() as $type }).collect();
                    assert_bits(&self.x.cast::<$type>(), &expected, stringify!($type));
                )*};
            }
            casts!(f32, f64, i64, u8);
            let truths: Vec<bool> = ex.iter().map(|&x| x != T::ZERO).collect();
            assert_bits(&self.x.cast::<bool>(), &truths, "bool");
        }
    }

    fn elementwise<T: Sample>(shape: &Shape, recipes: [&Recipe; 3], seed: u64) {
        let operands = Operands::<T>::new(shape, recipes, &mut generator(seed));
        operands.check(Unary::ALL, Binary::ALL, Compare::ALL);
        operands.check_casts();
    }

    /// In place, a window of a larger buffer: what lies around it stays.
    fn in_place<T: Sample>(shape: &Shape, recipes: [&Recipe; 2], seed: u64) {
        let rng = &mut generator(seed);
        let (window, len) = recipes[0].clone().injective().layout(shape);
        let before: Vec<T> = std::iter::repeat_with(|| T::any(rng)).take(len).collect();
        let y = recipes[1].tensor(shape, || T::any(rng));
        for (op, name) in [(Some(Binary::Maximum), "maximum"), (Some(Binary::Mul), "mul"), (None, "assign")] {
            let (mut got, mut expected) = (before.clone(), before.clone());
            match op {
                Some(op) => map::binary_in_place(op, &mut got, &window, y.source()),
                None => map::assign(&mut got, &window, y.source()),
            }
            update(&mut expected, &window, y.source(), |x, y| op.map_or(y, |op| binary(op, x, y)));
            assert_bits(&Tensor::from(got), &expected, name);
        }
        // The same on tensors, which copy first if they must.
        let mut x = Tensor::from(before.clone()).with_layout(window.clone());
        let held = x.clone();
        let expected = zip(&elements(x.source()), &elements(y.source()), |x, y| binary(Binary::Maximum, x, y));
        x.put_binary(Binary::Maximum, &y, site()).unwrap();
        assert_bits(&x, &expected, "maximum_");
        assert_bits(&held.with_layout(Layout::contiguous(Shape::from([len]))), &before, "what was held");
    }

    /// The same number, but for the sign of a zero.
    fn unsigned<T: Element>(x: T) -> T {
        if x == T::ZERO { T::ZERO } else { x }
    }

    fn reductions<T: Sample>(shape: &Shape, recipe: &Recipe, axes: &[usize], seed: u64) {
        let rng = &mut generator(seed);
        // More factors of 2 than an exponent has room for would round.
        let few = axes.iter().map(|&axis| shape[axis]).product::<usize>() <= 100;
        for &op in Reduction::ALL {
            let x = recipe.tensor(shape, || match op {
                Reduction::Sum => T::small(rng),
                Reduction::Prod if few => T::factor(rng),
                Reduction::Prod => T::from_i64(i64::from(rng.next_u32() % 2) * 2 - 1),
                _ => T::any(rng),
            });
            let expected: Vec<T> = columns(x.source(), axes).iter().map(|column| reduce(op, column)).collect();
            let got = x.apply_reduce(op, axes, site()).unwrap();
            let kept = |axis: usize| if axes.contains(&axis) { 1 } else { shape[axis] };
            assert_eq!(*got.shape(), (0..shape.rank()).map(kept).collect::<Shape>());
            // Which of two zeros is the larger is nobody's business.
            let expected: Vec<T> = expected.into_iter().map(unsigned).collect();
            assert_bits(&got.map(unsigned), &expected, (op, shape, axes));
        }
        let x = recipe.tensor(shape, || T::any(rng));
        for &axis in axes.iter().filter(|&&axis| shape[axis] > 0) {
            for largest in [true, false] {
                let expected: Vec<i64> =
                    columns(x.source(), &[axis]).iter().map(|column| arg(largest, column)).collect();
                let (kept, line) = x.layout().split(&[axis]);
                let mut got = vec![0; expected.len()];
                kernel_arg::arg(largest, x.source().data, &kept, &line, &mut got);
                assert_eq!(got, expected, "{shape} {axis}");
            }
        }
        if shape.rank() > 0 {
            let expected = columns(x.source(), &[shape.rank() - 1]);
            kernel_reduce::lines(x.source(), |i, line| {
                assert!(zip(line, &expected[i], |x, y| x.bits() == y.bits()).into_iter().all(|same| same));
            });
        }
    }

    /// Sums of numbers that round: pairwise, at most 64 elements one after the other (eight chains of 64, or 64 rows),
    /// then eight chains and a tree of depth log₂ n, so within (64 + 3 + log₂ n) u Σ|x|, u half an epsilon (Higham
    /// 1993, 2.4).
    fn rounded_sums<T: Float + Sample>(shape: &Shape, recipe: &Recipe, axes: &[usize], seed: u64) {
        let rng = &mut generator(seed);
        let x = recipe.tensor(shape, || T::from_f64((f64::any(rng).clamp(-8.0, 8.0) * 1.1).max(-8.0)));
        let got = x.apply_reduce(Reduction::Sum, axes, site()).unwrap().to_vec();
        for (got, column) in got.iter().zip(columns(x.source(), axes)) {
            let magnitude: f64 = column.iter().map(|x| x.to_f64().abs()).sum();
            let depth = 64.0 + 3.0 + (column.len().max(1) as f64).log2().ceil();
            let bound = depth * 0.5 * T::EPSILON.to_f64() * magnitude * 1.001;
            let difference = (got.to_f64() - exact_sum(column.iter().map(|x| x.to_f64()))).abs();
            assert!(difference <= bound, "{shape} {axes:?}: {difference:e} > {bound:e}");
        }
    }

    /// The sum with the rounding errors of the additions added at the end (A. Neumaier, 1974).
    fn exact_sum(values: impl Iterator<Item = f64>) -> f64 {
        let (mut sum, mut error) = (0.0f64, 0.0);
        for x in values {
            let total = sum + x;
            error += if sum.abs() >= x.abs() { (sum - total) + x } else { (x - total) + sum };
            sum = total;
        }
        sum + error
    }

    fn product<T: Sample>(batch: &Shape, [m, k, n]: [usize; 3], recipes: [&Recipe; 2], seed: u64) {
        let rng = &mut generator(seed);
        let with = |rows, columns| batch.iter().copied().chain([rows, columns]).collect::<Shape>();
        let x = recipes[0].tensor(&with(m, k), || T::small(rng));
        let y = recipes[1].tensor(&with(k, n), || T::small(rng));
        let (add, times) = (|x, y| binary(Binary::Add, x, y), |(x, y)| binary(Binary::Mul, x, y));
        let sum = |pairs: Vec<(T, T)>| unsigned(pairs.into_iter().map(times).fold(T::ZERO, add));
        let expected: Vec<T> = pairs(x.source(), y.source()).into_iter().map(sum).collect();
        // A single product of 0 and a negative number may stay -0.
        assert_bits(&x.apply_matmul(&y, site()).unwrap().map(unsigned), &expected, (batch, m, k, n));
    }

    fn gathers<T: Sample>(shape: &Shape, target: &Shape, recipes: [&Recipe; 3], seed: u64) {
        let rng = &mut generator(seed);
        let x = recipes[0].tensor(shape, || T::any(rng));
        let target = if shape.numel() == 0 { &Shape::from([0]) } else { target };
        let positions = recipes[1].tensor(target, || (u8::any(rng) as usize * 7 % shape.numel().max(1)) as i64);
        let places = elements(positions.source());
        let taken: Vec<T> = places.iter().map(|&place| nth(x.source(), place as usize)).collect();
        assert_bits(&x.apply_take(&positions, site()).unwrap(), &taken, "take");

        let g = recipes[2].tensor(target, || T::any(rng));
        let mut expected = vec![T::ZERO; shape.numel()];
        for (&place, g) in places.iter().zip(elements(g.source())) {
            expected[place as usize] = combine(Reduction::Sum, expected[place as usize], g);
        }
        assert_bits(&g.apply_put(&positions, shape, site()).unwrap(), &expected, "put");
    }

    fn embeds<T: Sample>(shape: &Shape, recipe: &Recipe, seed: u64) {
        let rng = &mut generator(seed);
        let mut views = vec![View::Flip((0..shape.rank()).collect()), View::Permute((0..shape.rank()).rev().collect())];
        views.push(View::Reshape(Shape::from([shape.numel()])));
        let wider: Shape = [2].into_iter().chain(shape.iter().map(|&size| if size == 1 { 3 } else { size })).collect();
        views.push(View::Expand(wider));
        for axis in 0..shape.rank() {
            let size = shape[axis];
            views.push(View::Slice { axis, start: size / 3, len: (size - size / 3).div_ceil(2), step: 2 });
            views.push(View::Unfold { axis, size: size.min(3), step: 2 });
            if axis > 0 {
                views.push(View::Diagonal { offset: 1, first: axis, second: axis - 1 });
            }
        }
        for view in views {
            let x = recipe_for(&view.shape(shape), recipe).tensor(&view.shape(shape), || T::any(rng));
            let window = view.apply(&Layout::contiguous(shape.clone())).unwrap();
            let shared = matches!(view, View::Expand(_) | View::Unfold { .. });
            let mut expected = vec![T::ZERO; shape.numel()];
            let landed = |place, x| if shared { combine(Reduction::Sum, place, x) } else { x };
            update(&mut expected, &window, x.source(), landed);
            assert_bits(&x.apply_embed(view.clone(), shape, site()).unwrap(), &expected, &view);
            // Onto what is there already.
            let mut got = expected.clone();
            gather::embed(x.source(), &window, true, &mut got);
            update(&mut expected, &window, x.source(), |place, x| combine(Reduction::Sum, place, x));
            assert_bits(&Tensor::from(got), &expected, view);
        }
    }

    /// The recipe, or a plain one where a view has given the shape more dimensions than recipes have.
    fn recipe_for(shape: &Shape, recipe: &Recipe) -> Recipe {
        let extra = shape.rank().saturating_sub(recipe.axes.len());
        let mut recipe = recipe.clone();
        recipe.axes.extend(vec![AxisRecipe::PLAIN; extra]);
        recipe.order.extend(recipe.order.len()..recipe.order.len() + extra);
        recipe
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn elementwise_kernels_equal_their_twins(
            shape in shapes(), a in recipes(), b in recipes(), c in recipes(), seed in any::<u64>(),
        ) {
            elementwise::<f32>(&shape, [&a, &b, &c], seed);
            elementwise::<f64>(&shape, [&a, &b, &c], seed);
            elementwise::<i64>(&shape, [&a, &b, &c], seed);
            elementwise::<u8>(&shape, [&a, &b, &c], seed);
            elementwise::<bool>(&shape, [&a, &b, &c], seed);
        }

        #[test]
        fn in_place_kernels_equal_their_twins(
            shape in shapes(), a in recipes(), b in recipes(), seed in any::<u64>(),
        ) {
            in_place::<f32>(&shape, [&a, &b], seed);
            in_place::<f64>(&shape, [&a, &b], seed);
            in_place::<i64>(&shape, [&a, &b], seed);
            in_place::<u8>(&shape, [&a, &b], seed);
            in_place::<bool>(&shape, [&a, &b], seed);
        }

        #[test]
        fn reductions_equal_their_twins(
            shape in shapes(), recipe in recipes(), chosen in vec(any::<bool>(), 6), seed in any::<u64>(),
        ) {
            let axes: Vec<usize> = (0..shape.rank()).filter(|&axis| chosen[axis]).collect();
            reductions::<f32>(&shape, &recipe, &axes, seed);
            reductions::<f64>(&shape, &recipe, &axes, seed);
            reductions::<i64>(&shape, &recipe, &axes, seed);
            reductions::<u8>(&shape, &recipe, &axes, seed);
            reductions::<bool>(&shape, &recipe, &axes, seed);
            rounded_sums::<f32>(&shape, &recipe, &axes, seed);
            rounded_sums::<f64>(&shape, &recipe, &axes, seed);
        }

        #[test]
        fn products_equal_their_twins(
            batch in vec(0usize..4, 0..=3), sizes in prop::array::uniform3(0usize..8), a in recipes(), b in recipes(),
            seed in any::<u64>(),
        ) {
            let batch = Shape::from(batch);
            product::<f32>(&batch, sizes, [&a, &b], seed);
            product::<f64>(&batch, sizes, [&a, &b], seed);
            product::<i64>(&batch, sizes, [&a, &b], seed);
            product::<u8>(&batch, sizes, [&a, &b], seed);
            product::<bool>(&batch, sizes, [&a, &b], seed);
        }

        #[test]
        fn gathers_equal_their_twins(
            shape in shapes(), target in shapes(), a in recipes(), b in recipes(), c in recipes(), seed in any::<u64>(),
        ) {
            gathers::<f32>(&shape, &target, [&a, &b, &c], seed);
            gathers::<i64>(&shape, &target, [&a, &b, &c], seed);
            gathers::<bool>(&shape, &target, [&a, &b, &c], seed);
            embeds::<f64>(&shape, &a, seed);
            embeds::<u8>(&shape, &a, seed);
        }
    }

    /// Layouts worth trying on large tensors.
    fn large_recipes() -> Vec<Recipe> {
        let plain = AxisRecipe::PLAIN;
        let first = |axis: AxisRecipe| {
            let mut recipe = Recipe::contiguous();
            recipe.axes[0] = axis;
            recipe
        };
        vec![
            Recipe::contiguous(),
            Recipe::reversed(),
            Recipe::all(AxisRecipe { flip: true, ..plain }),
            Recipe::all(AxisRecipe { step: 2, around: (1, 0), ..plain }),
            first(AxisRecipe { stretch: true, ..plain }),
            first(AxisRecipe { around: (2, 1), flip: true, ..plain }),
            Recipe::all(AxisRecipe { stretch: true, ..plain }),
        ]
    }

    #[test]
    fn blocks_meet_at_every_length() {
        let recipes = large_recipes();
        for n in [127usize, 128, 129, 1023, 1024, 1025, 4097, 16_385, 65_535, 65_536, 65_537, 70_001] {
            let mut shapes = vec![Shape::from([n]), Shape::from([2, n]), Shape::from([n, 3])];
            if n < 2000 {
                shapes.push(Shape::from([65, n]));
                shapes.push(Shape::from([3, 23, n]));
            }
            for shape in shapes {
                for (i, a) in recipes.iter().enumerate() {
                    let (b, c) = (&recipes[(i + 2) % recipes.len()], &recipes[(i + 3) % recipes.len()]);
                    let floats = Operands::<f32>::new(&shape, [a, b, c], &mut generator(n as u64));
                    floats.check(&[Unary::Neg], &[Binary::Add], &[Compare::Lt]);
                    let bytes = Operands::<u8>::new(&shape, [b, a, c], &mut generator(n as u64));
                    bytes.check(&[Unary::Not], &[Binary::Sub], &[]);
                    in_place::<i64>(&shape, [a, b], n as u64);
                }
            }
        }
    }

    #[test]
    fn large_reductions_equal_their_twins() {
        let shapes: [&[usize]; 7] =
            [&[70_001], &[2, 40_000], &[40_000, 3], &[300, 301], &[7, 600, 19], &[1025, 129], &[64, 9, 65, 2]];
        for shape in shapes.map(Shape::from) {
            let all: Vec<usize> = (0..shape.rank()).collect();
            let mut choices = vec![all.clone()];
            choices.extend(all.iter().map(|&axis| vec![axis]));
            choices.push(all.iter().copied().filter(|axis| axis % 2 == 0).collect());
            for recipe in large_recipes() {
                for axes in &choices {
                    let ends = |x: Tensor<i64>| {
                        for op in [Reduction::Sum, Reduction::Amax] {
                            let columns = columns(x.source(), axes);
                            let expected: Vec<i64> = columns.iter().map(|column| reduce(op, column)).collect();
                            assert_bits(&x.apply_reduce(op, axes, site()).unwrap(), &expected, (op, &shape, axes));
                        }
                    };
                    let rng = &mut generator(7);
                    ends(recipe.tensor(&shape, || i64::any(rng)));
                    rounded_sums::<f32>(&shape, &recipe, axes, 7);
                }
            }
        }
    }

    #[test]
    fn large_products_equal_their_twins() {
        let table: [(&[usize], [usize; 3]); 16] = [
            // Few columns, and one.
            (&[], [70, 200, 5]),
            (&[], [9, 1100, 3]),
            (&[], [600, 500, 10]),
            (&[2], [66, 64, 16]),
            (&[], [90, 300, 1]),
            // One element.
            (&[], [1, 300, 1]),
            (&[3], [1, 65, 1]),
            // One row, in several strips.
            (&[], [1, 13, 9001]),
            // Little work, columns that fill vectors and do not.
            (&[], [5, 30, 16]),
            (&[3], [7, 9, 70]),
            (&[4], [16, 16, 32]),
            (&[], [130, 70, 65]),
            (&[], [1, 3000, 400]),
            (&[], [333, 7, 500]),
            (&[9], [40, 70, 50]),
            (&[3, 5], [17, 100, 64]),
        ];
        let recipes = large_recipes();
        for (batch, sizes) in table {
            for (i, a) in recipes.iter().enumerate() {
                let b = &recipes[(i + 1) % recipes.len()];
                product::<f32>(&Shape::from(batch), sizes, [a, b], i as u64);
                product::<f64>(&Shape::from(batch), sizes, [a, b], i as u64);
                product::<i64>(&Shape::from(batch), sizes, [a, b], i as u64);
            }
        }
    }

    /// The largest distance of a function in f32 from the same in f64, in units in the last place of the f32 result:
    /// 1/2 is rounding correctly. The bound is what the GNU C library states for its f32 functions, which the standard
    /// library may call, and a half for rounding.
    #[test]
    fn functions_in_single_precision_are_those_in_double_rounded() {
        let rng = &mut generator(3);
        let mut inputs: Vec<f32> = std::iter::repeat_with(|| f32::any(rng)).take(2000).collect();
        inputs.extend((-4000i16..=4000).map(|i| f32::from(i) / 400.0));
        inputs.extend((-120..=120).map(|i| 2f32.powi(i)));
        for &op in Unary::ALL.iter().filter(|&&op| op != Unary::Not) {
            let worst = inputs.iter().map(|&x| {
                let (single, double) = (unary(op, x), unary(op, f64::from(x)));
                let rounded = double as f32;
                if single.bits() == rounded.bits() || single == rounded {
                    return 0.0;
                }
                let ulp = f64::from(rounded.abs().next_up()) - f64::from(rounded.abs());
                ((f64::from(single) - double).abs() / ulp, x).0
            });
            let worst =
                worst.fold(0.0, |worst: f64, error| if error > worst || error.is_nan() { error } else { worst });
            // What `docs/accuracy.md` says of it; of the others that says less.
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
            (Fmod, -7.0, 3.0, -1.0),
            (Fmod, 7.0, -3.0, 1.0),
            (Fmod, 1.0, 0.0, nan),
            (Remainder, -7.0, 3.0, 2.0),
            (Remainder, 7.0, -3.0, -2.0),
            (Remainder, -3.0, inf, inf),
            (Remainder, 1.0, 0.0, nan),
            (FloorDivide, -7.0, 3.0, -3.0),
            (FloorDivide, 7.0, -3.0, -3.0),
            (FloorDivide, -3.0, inf, -1.0),
            (FloorDivide, inf, 3.0, nan),
            (FloorDivide, 1.0, 0.0, inf),
            (FloorDivide, -0.0, 3.0, -0.0),
            (Hypot, inf, nan, inf),
            (Hypot, 3.0 * 2f64.powi(600), 4.0 * 2f64.powi(600), 5.0 * 2f64.powi(600)),
            (Copysign, 3.0, -0.0, -3.0),
            (Nextafter, 1.0, inf, 1.0 + f64::EPSILON),
            (Nextafter, 0.0, -1.0, -f64::from_bits(1)),
            (Atan2, -0.0, -1.0, -std::f64::consts::PI),
        ];
        for (op, x, y, expected) in table {
            assert_eq!(binary(op, x, y).bits(), expected.bits(), "{op:?} {x} {y}");
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
            assert_eq!(unary(op, x).bits(), expected.bits(), "{op:?} {x}");
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
            assert_eq!(binary(op, x, y), expected, "{op:?} {x} {y}");
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
            assert_eq!(binary::<u8>(op, x, y), expected, "{op:?} {x} {y}");
        }
    }

    #[test]
    fn an_integer_is_not_divided_by_zero() {
        let (x, zero) = (Tensor::from([4i64, 6]), Tensor::from([2i64, 0]));
        for op in [Binary::Div, Binary::Fmod, Binary::Remainder, Binary::FloorDivide] {
            assert_eq!(x.apply_binary(op, &zero, site()).unwrap_err().sentence(), "ZeroDivisionError");
        }
    }
}
