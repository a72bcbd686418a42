//! Functions that the tests of several kernels share.

use std::fmt::Debug;

use proptest::prelude::{ProptestConfig, any};
use proptest::test_runner::TestRunner;

use crate::kernel::testing::layouts::{AxisRecipe, Recipe, Sample, recipes, shapes};
use crate::{Element, Shape, Site, Tensor};

pub(crate) fn site() -> Site {
    Site::here("test")
}

/// Returns the configuration of a property test with `count` cases. Under Miri, the number of cases is 2. The environment variable
/// `PROPTEST_CASES` lowers the number, for emulators.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    let limit = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(u32::MAX);
    ProptestConfig::with_cases(if cfg!(miri) { 2 } else { count.min(limit) })
}

/// A random case of a test over layouts. Each test reads the fields that it needs.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) shape: Shape,
    pub(crate) other: Shape,
    pub(crate) recipes: [Recipe; 3],
    pub(crate) chosen: [bool; 6],
    pub(crate) seed: u64,
}

/// Runs `test` on 96 random cases, or as many as [`cases`] allows. If `test` panics, this function panics with the smallest case that it
/// finds. Several tests share this function, because the code of proptest is long and is compiled for each use.
#[track_caller]
pub(crate) fn check_cases(test: &dyn Fn(&Case)) {
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..cases(96) });
    let three = proptest::array::uniform3(recipes());
    let parts = (shapes(), shapes(), three, any::<[bool; 6]>(), any::<u64>());
    let result = runner.run(&parts, |(shape, other, recipes, chosen, seed)| {
        test(&Case { shape, other, recipes, chosen, seed });
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}\n{runner}");
    }
}

#[track_caller]
pub(crate) fn assert_bits<T: Sample>(got: &Tensor<T>, expected: &[T], what: impl Debug) {
    assert_bits_of(got, expected, &what);
}

/// Does the same as [`assert_bits`], and is compiled once for each element type.
#[track_caller]
fn assert_bits_of<T: Sample>(got: &Tensor<T>, expected: &[T], what: &dyn Debug) {
    let got = got.to_vec();
    let place = std::iter::zip(&got, expected).position(|(x, y)| x.bits() != y.bits());
    if place.is_some() || got.len() != expected.len() {
        panic!("{what:?} of {}: at {place:?} of {} and {}", T::DTYPE, got.len(), expected.len());
    }
}

pub(crate) fn zip<T: Copy, S: Copy, U>(x: &[T], y: &[S], f: impl Fn(T, S) -> U) -> Vec<U> {
    assert_eq!(x.len(), y.len());
    x.iter().zip(y).map(|(&x, &y)| f(x, y)).collect()
}

/// Returns the value, with -0 replaced by 0.
pub(crate) fn unsigned<T: Element>(x: T) -> T {
    if x == T::ZERO { T::ZERO } else { x }
}

/// Returns `recipe`, extended to the number of dimensions of `shape`. The new dimensions are contiguous.
pub(crate) fn recipe_for(shape: &Shape, recipe: &Recipe) -> Recipe {
    let extra = shape.rank().saturating_sub(recipe.axes.len());
    let mut recipe = recipe.clone();
    recipe.axes.extend(vec![AxisRecipe::PLAIN; extra]);
    recipe.order.extend(recipe.order.len()..recipe.order.len() + extra);
    recipe
}

/// Returns recipes for large tensors.
pub(crate) fn large_recipes() -> Vec<Recipe> {
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
