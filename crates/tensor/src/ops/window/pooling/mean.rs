//! Mean pooling: the sum of each window, divided by its number of elements. The [`PoolOptions`] decide whether padding counts, or give
//! another divisor.

use crate::kernel::pool::mean as kernel;
use crate::kernel::pool::mean::{Divisor, WindowSpans};
use crate::ops::window::pooling::options::PoolOptions;
use crate::ops::window::pooling::plan::window_axes;
use crate::ops::window::pooling::volume::{Volume, area};
use crate::ops::window::windowed::{MeanPoolForm, Windowed};
use crate::ops::window::windows::{add_batch, remove_batch};
use crate::ops::{Compose, Result};
use crate::shape::error::ensure;
use crate::{Axes, Float, Shape, Site, Sizes};

/// Returns the mean of each window.
pub(crate) fn avg_pool<A: Windowed<Elem: Float>>(
    x: &A,
    rank: usize,
    kernel: &Sizes,
    options: &PoolOptions,
    at: Site,
) -> Result<A> {
    let axes = window_axes(x, rank, kernel, options, false, at)?;
    ensure!(options.divisor_override != Some(0), at, "divisor must be not zero");
    let (x, added) = add_batch(x, rank + 2, at)?;
    let spans = axes.iter().enumerate().map(|(number, axis)| {
        // The divisor of a window is the product of one divisor per dimension. So the first dimension gets the caller's divisor, and the
        // other dimensions get 1.
        let divisor = match (options.divisor_override, number) {
            (None, _) if options.count_include_pad => Divisor::Padded,
            (None, _) => Divisor::Inside,
            (Some(divisor), 0) => Divisor::Is(divisor as f64),
            _ => Divisor::Is(1.0),
        };
        WindowSpans::moving(axis.input, axis.output, [axis.kernel, axis.stride, axis.padding_before], divisor)
    });
    remove_batch(average(&x, spans.collect(), at)?, added, at)
}

/// Returns the mean of each window of `[n, c, …]`. `spans` has the windows along each dimension after the first two.
pub(crate) fn average<A: Windowed<Elem: Float>>(x: &A, mut spans: Vec<WindowSpans>, at: Site) -> Result<A> {
    if let Some(divisor) = spans.iter().map(WindowSpans::whole).product::<Option<f64>>() {
        return x.sum_over(&Axes::from_iter(2..2 + spans.len()), at)?.divide_by(divisor, at);
    }
    if spans.len() == 3 {
        // The mean is computed in two steps: over planes, then along the depth. The divisor of a window is the product of the divisors of
        // both steps.
        let (volume, depth) = (Volume::new(&x.shape()), spans.remove(0));
        let (depth_count, plane) = (depth.count(), [spans[0].count(), spans[1].count()]);
        let planes = average(&volume.to_planes(x, at)?, spans, at)?;
        let count = area(plane);
        let each = WindowSpans::moving(count, count, [1, 1, 0], Divisor::Is(1.0));
        let lines = average(&volume.to_lines(&planes, plane, at)?, vec![depth, each], at)?;
        return volume.to_volumes(&lines, depth_count, plane, at);
    }
    let input = x.shape();
    let mut output: Shape = input[..2].into();
    spans.iter().for_each(|windows| output.push(windows.count()));
    let columns = spans.pop().unwrap_or_else(WindowSpans::none);
    // `MeanPool` describes planes of rows and columns. If only one dimension is pooled, a plane is a single row.
    let rows = spans.pop().unwrap_or_else(WindowSpans::none);
    x.apply_avg_pool(&MeanPoolForm { input, output, windows: kernel::MeanPool { rows, columns } }, at)
}
