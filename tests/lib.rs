//! Code that several test files share: a lock, the memory of the process, tensors of many layouts over shapes that
//! broadcast, and the runner of the conformance set.

pub mod conformance;

use std::sync::{Mutex, MutexGuard, PoisonError};

use proptest::collection::vec;
use proptest::prelude::*;
use wengert::tensor::prelude::*;

/// Blocks other callers of this function until the returned guard is dropped. Tests of a property of the whole process use it: threads, the
/// pool, memory.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a figure of this process's memory in bytes, from the line `name` of `/proc/self/status`. `VmRSS` is the resident memory, `VmPeak`
/// the largest address space until now. Linux writes these figures in KiB, whatever the size of a page is.
///
/// # Panics
///
/// If the file does not have the line.
#[cfg(target_os = "linux")]
pub fn memory(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let figure =
        status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("a line of the file");
    1024 * figure.trim().strip_suffix(" kB").and_then(|number| number.parse::<usize>().ok()).expect("a number of KiB")
}

/// The largest rank of [`shapes`] and [`Recipe`].
pub const RANK: usize = 5;

/// Generates shapes of rank 0 to 5 with small sizes, including 0 and 1.
pub fn shapes() -> impl Strategy<Value = Vec<usize>> {
    let size = prop_oneof![1 => Just(0usize), 6 => Just(1), 9 => 2usize..=4, 2 => 5usize..=11];
    vec(size, 0..=RANK)
}

/// A thinning of a shape gives a shape that broadcasts to it: leading dimensions are dropped, and some sizes become 1.
#[derive(Clone, Debug)]
pub struct Thinning {
    dropped: usize,
    ones: Vec<bool>,
}

impl Thinning {
    /// Returns the thinned shape, which broadcasts to `shape`.
    pub fn of(&self, shape: &[usize]) -> Vec<usize> {
        let kept = shape.iter().zip(&self.ones).skip(self.dropped.min(shape.len()));
        kept.map(|(&size, &one)| if one { 1 } else { size }).collect()
    }
}

/// Generates every thinning of shapes with up to [`RANK`] dimensions.
pub fn thinnings() -> impl Strategy<Value = Thinning> {
    let dropped = prop_oneof![2 => Just(0), 1 => 0..=RANK];
    (dropped, vec(prop::bool::weighted(0.4), RANK)).prop_map(|(dropped, ones)| Thinning { dropped, ones })
}

/// A layout of a tensor in its buffer: a part of a larger tensor, with any order and direction of dimensions.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// For each dimension: the number of elements before the first one of the tensor, the step, and true if the
    /// dimension is reversed.
    axes: Vec<(usize, usize, bool)>,
    /// The dimensions of the tensor, from the largest stride to the smallest stride.
    order: Vec<usize>,
}

/// Generates layouts without overlap: parts of a larger tensor with steps up to 3.
pub fn recipes() -> impl Strategy<Value = Recipe> {
    let axis = prop_oneof![Just((0, 1, false)), (0..2usize, 1..=3usize, any::<bool>())];
    let order = Just((0..RANK).collect::<Vec<_>>()).prop_shuffle();
    (vec(axis, RANK), order).prop_map(|(axes, order)| Recipe { axes, order })
}

impl Recipe {
    /// Returns a tensor of shape `shape` with this layout. Calls of `element` give the elements of the whole buffer.
    pub fn tensor(&self, shape: &[usize], mut element: impl FnMut() -> f64) -> Tensor<f64> {
        let order: Vec<usize> = self.order.iter().copied().filter(|&axis| axis < shape.len()).collect();
        let extent = |axis: usize| self.axes[axis].0 + shape[axis] * self.axes[axis].1;
        let whole: Vec<usize> = order.iter().map(|&axis| extent(axis)).collect();
        let place = |axis: usize| order.iter().position(|&other| other == axis).unwrap_or_default() as isize;
        let mut x = Tensor::from_fn(&whole[..], |_| element());
        if !shape.is_empty() {
            x = x.permute((0..shape.len()).map(place).collect::<Vec<isize>>());
        }
        for (axis, &(before, step, flip)) in self.axes.iter().enumerate().take(shape.len()) {
            x = x.slice(axis, (before.., step));
            if flip {
                x = x.flip(axis as isize);
            }
        }
        assert_eq!(x.shape().sizes(), shape);
        x
    }
}

/// Returns a generator of small integers in f64, whose sums and products are exact.
pub fn integers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed | 1;
    move || {
        // This is a linear congruential generator with Knuth's constants. Its high bits are good enough to distinguish elements.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) % 41) as f64 - 20.0
    }
}
