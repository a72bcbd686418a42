//! Mean pooling: the sum of each window, divided by the number of elements that count (see the options).

use crate::kernel::pool::mean as kernel;
use crate::kernel::pool::mean::WindowSpans;
use crate::ops::Result;
use crate::ops::primitive::compose::Compose;
use crate::ops::window::pooling::options::PoolOptions;
use crate::ops::window::pooling::plan::{Axis, Plan};
use crate::ops::window::windowed::{MeanForm, Windowed};
use crate::ops::window::windows::{add_batch, remove_batch};
use crate::{Axes, Float, Shape, Site, Sizes};

/// Returns the mean of each window.
pub(crate) fn avg_pool<A: Windowed<Elem: Float>>(
    x: &A,
    rank: usize,
    kernel: &Sizes,
    options: &PoolOptions,
    at: Site,
) -> Result<A> {
    let plan = Plan::new(x, rank, kernel, options, false, at)?;
    let (x, added) = add_batch(x, rank + 2, at)?;
    let spans = plan.axes.iter().enumerate().map(|(number, axis)| {
        // The kernel multiplies the divisors of both dimensions, so a given divisor belongs to only one of them.
        let divisor = |window: usize| match (options.divisor_override, number) {
            (None, _) => counted_elements(axis, window, options) as f64,
            (Some(divisor), 0) => divisor as f64,
            _ => 1.0,
        };
        let windows = 0..axis.count;
        WindowSpans::new(
            axis.size,
            windows.clone().map(|window| clip(axis, window)).collect(),
            windows.map(divisor).collect(),
        )
    });
    remove_batch(average(&x, spans.collect(), at)?, added, at)
}

/// Returns the mean of each window of `[n, c, …]`. `spans` has the windows along each dimension after the first two.
pub(crate) fn average<A: Windowed<Elem: Float>>(x: &A, mut spans: Vec<WindowSpans>, at: Site) -> Result<A> {
    if let Some(divisor) = spans.iter().map(WindowSpans::whole).product::<Option<f64>>() {
        return x.summed(&Axes::from_iter(2..2 + spans.len()), at)?.divided(divisor, at);
    }
    let input = x.shape();
    let mut output: Shape = input[..2].into();
    spans.iter().for_each(|windows| output.push(windows.count()));
    let columns = spans.pop().unwrap_or_else(WindowSpans::none);
    // With one pooled dimension, the plane has a single row.
    let rows = spans.pop().unwrap_or_else(WindowSpans::none);
    x.apply_avg_pool(&MeanForm { input, output, windows: kernel::MeanPool { rows, columns } }, at)
}

/// Returns the range of the elements of window `number` that lie inside the input.
fn clip(axis: &Axis, number: usize) -> (usize, usize) {
    let start = number * axis.window.stride;
    let position = |padded: usize| padded.saturating_sub(axis.padding).min(axis.size);
    (position(start), position(start.saturating_add(axis.window.kernel)))
}

/// Returns the divisor of a window's mean. It is at least 1, so that the mean of no elements is 0.
fn counted_elements(axis: &Axis, number: usize, options: &PoolOptions) -> usize {
    if !options.count_include_pad {
        let (first, end) = clip(axis, number);
        return (end - first).max(1);
    }
    let start = number * axis.window.stride;
    let end = start.saturating_add(axis.window.kernel).min(axis.size + 2 * axis.padding);
    end.saturating_sub(start).max(1)
}
