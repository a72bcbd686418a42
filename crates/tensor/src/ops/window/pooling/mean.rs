//! The mean of every window: its sum, divided by how many elements count.

use crate::kernel::pool::mean as kernel;
use crate::kernel::pool::mean::WindowSpans;
use crate::ops::compose::Compose;
use crate::ops::window::pooling::options::PoolOptions;
use crate::ops::window::pooling::plan::{Axis, Plan};
use crate::ops::window::windowed::{MeanForm, Windowed};
use crate::ops::window::windows::{batched, unbatched};
use crate::{Axes, Float, Shape, Site};

pub(crate) fn mean<A: Windowed<Elem: Float>>(
    x: &A,
    plan: &Plan,
    options: &PoolOptions,
    at: Site,
) -> Result<A, A::Error> {
    let (x, added) = batched(x, plan.axes.len() + 2, at)?;
    let along = plan.axes.iter().enumerate().map(|(number, axis)| {
        let divisor = |window: usize| match (options.divisor_override, number) {
            (None, _) => elements(axis, window, options) as f64,
            (Some(divisor), 0) => divisor as f64,
            _ => 1.0,
        };
        let windows = 0..axis.count;
        WindowSpans::new(
            axis.size,
            windows.clone().map(|window| inside(axis, window)).collect(),
            windows.map(divisor).collect(),
        )
    });
    unbatched(averaged(&x, along.collect(), at)?, added, at)
}

/// Over `[n, c, …]`, with the windows of each dimension after these two.
pub(crate) fn averaged<A: Windowed<Elem: Float>>(x: &A, mut along: Vec<WindowSpans>, at: Site) -> Result<A, A::Error> {
    if let Some(divisor) = along.iter().map(WindowSpans::whole).product::<Option<f64>>() {
        return x.summed(&Axes::from_iter(2..2 + along.len()), at)?.divided(divisor, at);
    }
    let input = x.shape();
    let mut output: Shape = input[..2].into();
    along.iter().for_each(|windows| output.push(windows.count()));
    let columns = along.pop().unwrap_or_else(WindowSpans::none);
    // One dimension is a plane of one row.
    let rows = along.pop().unwrap_or_else(WindowSpans::none);
    x.apply_mean(&MeanForm { input, output, plan: kernel::MeanPool { rows, columns } }, at)
}

/// The elements of a window, first and one past the last, that are not padding.
fn inside(axis: &Axis, number: usize) -> (usize, usize) {
    let start = number * axis.window.stride;
    let place = |place: usize| place.saturating_sub(axis.padding).min(axis.size);
    (place(start), place(start.saturating_add(axis.window.kernel)))
}

/// How many elements of a window its mean divides by; at least one, so that the mean of no elements is 0.
fn elements(axis: &Axis, number: usize, options: &PoolOptions) -> usize {
    if !options.count_include_pad {
        let (first, last) = inside(axis, number);
        return (last - first).max(1);
    }
    let start = number * axis.window.stride;
    let end = start.saturating_add(axis.window.kernel).min(axis.size + 2 * axis.padding);
    end.saturating_sub(start).max(1)
}
