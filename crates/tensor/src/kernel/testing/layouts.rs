//! Tensors of every layout, for tests. A [`Recipe`] describes the layout of a tensor of any shape in its buffer.

use std::fmt;

use proptest::collection::vec;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::memory::storage::Storage;
use crate::shape::shape::INLINE_RANK;
use crate::{Element, Layout, Shape, Tensor};

/// The maximum number of dimensions of a tensor whose layout a recipe describes.
const RANK: usize = INLINE_RANK + 2;

/// A description of a tensor's layout in its buffer. A recipe applies to every shape of at most [`RANK`] dimensions.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) axes: Vec<AxisRecipe>,
    /// The dimensions, from the largest stride to the smallest.
    pub(crate) order: Vec<usize>,
}

/// The way in which a dimension of a tensor is cut out of a larger dimension of its buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisRecipe {
    /// The number of elements that are cut off at the start of the larger dimension, and the number cut off at its end.
    pub(crate) around: (usize, usize),
    /// The distance between the kept elements: only every `step`-th element is kept.
    pub(crate) step: usize,
    /// True if the order of the elements is reversed.
    pub(crate) flip: bool,
    /// True if the dimension repeats one element, with stride 0.
    pub(crate) stretch: bool,
}

impl fmt::Debug for Recipe {
    /// Prints the recipe on a single line, because a failing case prints several recipes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order {:?}", self.order.as_slice())?;
        for AxisRecipe { around: (before, after), step, flip, stretch } in &self.axes {
            let way = if *flip { '-' } else { '+' };
            write!(f, ", {before}({way}{step}{}){after}", if *stretch { "x0" } else { "" })?;
        }
        Ok(())
    }
}

impl AxisRecipe {
    pub(crate) const PLAIN: Self = AxisRecipe { around: (0, 0), step: 1, flip: false, stretch: false };
}

impl Recipe {
    /// Returns the recipe of row-major tensors.
    pub(crate) fn contiguous() -> Self {
        Recipe { axes: vec![AxisRecipe::PLAIN; RANK], order: (0..RANK).collect() }
    }

    /// Returns a recipe that applies `axis` to every dimension.
    pub(crate) fn all(axis: AxisRecipe) -> Self {
        Recipe { axes: vec![axis; RANK], ..Recipe::contiguous() }
    }

    /// Returns the recipe of column-major tensors.
    pub(crate) fn reversed() -> Self {
        Recipe { order: (0..RANK).rev().collect(), ..Recipe::contiguous() }
    }

    /// Returns this recipe without repeated elements: no dimension has stride 0.
    pub(crate) fn injective(mut self) -> Self {
        self.axes.iter_mut().for_each(|axis| axis.stretch = false);
        self
    }

    /// Returns the layout of a tensor of shape `shape`, and the length of its buffer.
    pub(crate) fn layout(&self, shape: &Shape) -> (Layout, usize) {
        let rank = shape.rank();
        let mut axes = self.axes[..rank].to_vec();
        let size = |axis: &AxisRecipe, size: usize| {
            let kept = if axis.stretch { 1 } else { size };
            axis.around.0 + axis.around.1 + if kept == 0 { 0 } else { (kept - 1) * axis.step + 1 }
        };
        // Limits the size of buffers, so that many cases can run. A dimension with which the buffer would be too large is not cut out of
        // a larger one, repeated or reversed.
        let mut total = 1;
        for (axis, &wanted) in axes.iter_mut().zip(shape.iter()) {
            if total * size(axis, wanted) > 1 << 14 {
                *axis = AxisRecipe::PLAIN;
            }
            total *= size(axis, wanted);
        }
        let order: Vec<usize> = self.order.iter().copied().filter(|&axis| axis < rank).collect();
        let whole: Shape = order.iter().map(|&axis| size(&axes[axis], shape[axis])).collect();
        let place = |axis: usize| order.iter().position(|&other| other == axis).unwrap();
        let buffer = whole.numel();
        let mut layout = Layout::contiguous(whole).permute(&(0..rank).map(place).collect::<Vec<_>>());
        for (position, axis) in axes.iter().enumerate() {
            let kept = if axis.stretch { 1 } else { shape[position] };
            layout = layout.slice(position, axis.around.0, kept, axis.step as isize);
            if axis.flip {
                layout = layout.flip(&[position]);
            }
        }
        (layout.expand(shape).unwrap(), buffer)
    }

    /// Returns a tensor of shape `shape` with the layout of this recipe. `element` gives the elements of the whole buffer.
    pub(crate) fn tensor<T: Element>(&self, shape: &Shape, mut element: impl FnMut() -> T) -> Tensor<T> {
        self.tensor_of(shape, &mut element)
    }

    /// Does the same as [`tensor`](Self::tensor), and is compiled once for each element type.
    fn tensor_of<T: Element>(&self, shape: &Shape, element: &mut dyn FnMut() -> T) -> Tensor<T> {
        let (layout, buffer) = self.layout(shape);
        let data = std::iter::repeat_with(element).take(buffer).collect();
        Tensor::from_parts(Storage::from_vec(data), layout)
    }
}

/// Generates shapes of rank 0 to 6 with at most 3000 elements. Some sizes are 0 or 1.
pub(crate) fn shapes() -> impl Strategy<Value = Shape> {
    let size = prop_oneof![1 => Just(0usize), 6 => Just(1), 9 => 2usize..=4, 3 => 5usize..=9, 2 => 10usize..=300];
    vec(size, 0..=RANK).prop_map(|sizes| {
        let mut total = 1;
        let capped = |size: usize| {
            let size = if total * size > 3000 { 1 } else { size };
            total *= size.max(1);
            size
        };
        sizes.into_iter().map(capped).collect()
    })
}

/// Generates recipes of every kind of layout.
pub(crate) fn recipes() -> impl Strategy<Value = Recipe> {
    let axis = prop_oneof![
        2 => Just(AxisRecipe::PLAIN),
        3 => (0..2usize, 0..2usize, 1..=3usize, any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(before, after, step, flip, stretch)| {
                let around = (before, after);
                AxisRecipe { around, step, flip, stretch }
            }),
    ];
    let order = prop_oneof![Just((0..RANK).collect::<Vec<_>>()), Just((0..RANK).collect::<Vec<_>>()).prop_shuffle()];
    (vec(axis, RANK), order).prop_map(|(axes, order)| Recipe { axes, order })
}

/// The number of random values that [`repeated`] draws. The number is prime, so that elements of a large tensor that are a row or a block
/// apart differ.
pub(crate) const VALUES: usize = 4099;

/// Returns a source of elements that calls `draw` for the first [`VALUES`] elements and then repeats them.
pub(crate) fn repeated<T: Copy>(mut draw: impl FnMut() -> T) -> impl FnMut() -> T {
    let (mut values, mut next) = (Vec::new(), 0);
    move || {
        if next == VALUES {
            next = 0;
        }
        if next == values.len() {
            values.push(draw());
        }
        next += 1;
        values[next - 1]
    }
}

/// Returns a generator of random elements of a test case.
pub(crate) fn generator(seed: u64) -> Pcg64 {
    Pcg64::seed_from_u64(seed)
}

/// An element type for which test cases have random values.
pub(crate) trait Sample: Element {
    /// Returns a random value. The smallest and largest values of the type are frequent.
    fn any(rng: &mut Pcg64) -> Self;
    /// Returns a random small integer. Sums of many of these values, or of many products of two of them, are exact.
    fn small(rng: &mut Pcg64) -> Self;
    /// Returns ±1, ±2 or ±1/2 at random, for floating-point types. Products of a moderate number of factors are exact. Integers are odd,
    /// and truth values seldom false.
    fn factor(rng: &mut Pcg64) -> Self;
    /// Returns the bits of the value. All NaNs give the same bits.
    fn bits(self) -> u64;
}

macro_rules! floats {
    ($($type:ident),*) => {$(
        impl Sample for $type {
            fn any(rng: &mut Pcg64) -> Self {
                // Some of these numbers are subnormal. One is a negative NaN whose payload has its lowest bit set.
                const EDGES: [$type; 24] = [
                    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -3.5, 1e-30, -1e30, $type::MAX, $type::MIN, $type::MIN_POSITIVE,
                    -$type::MIN_POSITIVE, $type::from_bits(1), -$type::from_bits(1), $type::MIN_POSITIVE.next_down(),
                    -$type::MIN_POSITIVE.next_down(), $type::from_bits(77_777), $type::INFINITY, $type::NEG_INFINITY,
                    $type::NAN, -$type::from_bits($type::NAN.to_bits() | 1), $type::EPSILON,
                ];
                match rng.next_u32() % 2 {
                    0 => EDGES[rng.next_u32() as usize % EDGES.len()],
                    _ => f64::from(rng.next_u32() as i32) as $type / (1u32 << 28) as $type,
                }
            }

            fn small(rng: &mut Pcg64) -> Self {
                (rng.next_u32() % 17) as $type - 8.0
            }

            fn factor(rng: &mut Pcg64) -> Self {
                [1.0, -1.0, 2.0, 0.5, -2.0, -0.5][rng.next_u32() as usize % 6]
            }

            fn bits(self) -> u64 {
                if self.is_nan() { u64::MAX } else { u64::from(self.to_bits()) }
            }
        }
    )*};
}

floats!(f32, f64);

macro_rules! integers {
    ($($type:ident),*) => {$(
        impl Sample for $type {
            fn any(rng: &mut Pcg64) -> Self {
                const EDGES: [$type; 8] =
                    [0, 1, 2, 3, $type::MAX, $type::MIN, $type::MAX - 1, (0 as $type).wrapping_sub(1)];
                match rng.next_u32() % 2 {
                    0 => EDGES[rng.next_u32() as usize % EDGES.len()],
                    _ => rng.next_u64() as $type,
                }
            }

            fn small(rng: &mut Pcg64) -> Self {
                (rng.next_u32() % 9) as $type
            }

            fn factor(rng: &mut Pcg64) -> Self {
                rng.next_u64() as $type | 1
            }

            fn bits(self) -> u64 {
                self as u64
            }
        }
    )*};
}

integers!(i64, u8);

impl Sample for bool {
    fn any(rng: &mut Pcg64) -> Self {
        rng.next_u32().is_multiple_of(2)
    }

    fn small(rng: &mut Pcg64) -> Self {
        rng.next_u32().is_multiple_of(16)
    }

    fn factor(rng: &mut Pcg64) -> Self {
        !rng.next_u32().is_multiple_of(16)
    }

    fn bits(self) -> u64 {
        u64::from(self)
    }
}
