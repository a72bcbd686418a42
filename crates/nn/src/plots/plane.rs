//! Draws points in the plane, such as data of two features or embeddings, and the decision boundary of a classifier.

use plotters::prelude::*;
use wengert_tensor::{Float, Tensor};

use super::style::{GRID, INK, UNITS_PER_PIXEL, colour, format_tick, png, scale_to_pixels, text_style};
use crate::{Error, Result};

/// The width and height of a picture in pixels.
const SIZE: (u32, u32) = (640, 560);

/// The width and height of the image that shows the regions of a decision boundary, in pixels.
const GRID_SIZE: usize = 160;

/// The largest absolute value of a coordinate that is drawn. With a larger coordinate in the picture, all other points would look like one
/// point. For the largest numbers of f64, the drawing library does not terminate.
const MAX_COORDINATE: f64 = 1e12;

/// Draws points `[n, 2]` in the colours of their classes `[n]`, as an SVG image. Classes whose difference is a multiple of 10 have the same
/// colour. Points with a coordinate that is NaN or above 10¹² in absolute value are left out.
///
/// # Errors
///
/// If the points have another shape, or there is not one class for each point ([`Error::Dataset`]), or the drawing
/// library fails ([`Error::Plot`]).
pub fn points<T: Float>(title: &str, points: &Tensor<T>, classes: &Tensor<i64>) -> Result<String> {
    draw(title, points, classes, None::<fn(&Tensor<T>) -> Tensor<i64>>)
}

/// Fills the region of each class with a lighter tint of the class's colour, and draws [`points`] over it. `classify`
/// gets the points of a grid, `[m, 2]`, and returns their classes `[m]`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::plots::decision_boundary;
/// use wengert::prelude::*;
///
/// let points = Tensor::from([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0f32]]);
/// let above = |x: &Tensor<f32>| x.select(1, 1).gt(0.5).cast();
/// let svg = decision_boundary("Above", &points, &Tensor::from([0, 1, 1]), above)?;
/// assert!(svg.contains("<image"));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// As for `points`. Also if `classify` does not return a class for each point of the grid.
pub fn decision_boundary<T: Float>(
    title: &str,
    points: &Tensor<T>,
    classes: &Tensor<i64>,
    classify: impl FnOnce(&Tensor<T>) -> Tensor<i64>,
) -> Result<String> {
    draw(title, points, classes, Some(classify))
}

/// Draws points. If `classify` is given, also draws the regions of the classes. Points and classes of other shapes than
/// `[n, 2]` and `[n]` are an error.
fn draw<T: Float>(
    title: &str,
    points: &Tensor<T>,
    classes: &Tensor<i64>,
    classify: Option<impl FnOnce(&Tensor<T>) -> Tensor<i64>>,
) -> Result<String> {
    let shape = points.shape();
    if shape.rank() != 2 || shape[1] != 2 || classes.shape().sizes() != [shape[0]] {
        let of = classes.shape();
        return Err(Error::Dataset(format!("expected points [n, 2] and classes [n], but got {shape} and {of}")));
    }
    let values: Vec<f64> = points.iter().map(T::to_f64).collect();
    let is_drawn = |(point, _): &(&[f64; 2], i64)| point.iter().all(|x| x.abs() <= MAX_COORDINATE);
    let drawn: Vec<(&[f64; 2], i64)> = values.as_chunks().0.iter().zip(classes.iter()).filter(is_drawn).collect();
    let range = |axis: usize| {
        let of_axis = || drawn.iter().map(|(point, _)| point[axis]);
        let (low, high) = (of_axis().fold(f64::INFINITY, f64::min), of_axis().fold(f64::NEG_INFINITY, f64::max));
        let margin = if high > low { 0.06 * (high - low) } else { 1.0 };
        if low <= high { (low - margin, high + margin) } else { (0.0, 1.0) }
    };
    let [x_range, y_range] = [range(0), range(1)];
    let (mut svg, mut plotting_area) = (String::new(), (0..0, 0..0));
    let outcome = draw_chart(&mut svg, &mut plotting_area, title, x_range, y_range, &drawn);
    outcome.map_err(|error| Error::Plot(error.to_string()))?;
    if let Some(classify) = classify {
        let grid = Tensor::from_fn([GRID_SIZE * GRID_SIZE, 2], |i| {
            let (row, column) = (i[0] / GRID_SIZE, i[0] % GRID_SIZE);
            let middle =
                |step: usize, (low, high): (f64, f64)| low + (step as f64 + 0.5) / GRID_SIZE as f64 * (high - low);
            T::from_f64(if i[1] == 0 { middle(column, x_range) } else { middle(GRID_SIZE - 1 - row, y_range) })
        });
        let classes = classify(&grid);
        if classes.shape().sizes() != [GRID_SIZE * GRID_SIZE] {
            let (found, expected) = (classes.shape(), GRID_SIZE * GRID_SIZE);
            return Err(Error::Dataset(format!(
                "expected a class for each of {expected} points of the grid, but got classes of shape {found}"
            )));
        }
        let light = |class: i64| {
            let RGBColor(r, g, b) = class_colour(class);
            [r, g, b].map(|part| 255 - (255 - part) / 4)
        };
        let pixels: Vec<[u8; 3]> = classes.iter().map(light).collect();
        let image = format!(
            "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" href=\"{}\"/>\n",
            plotting_area.0.start,
            plotting_area.1.start,
            plotting_area.0.len(),
            plotting_area.1.len(),
            png(&pixels, GRID_SIZE),
        );
        // The image of the regions is inserted above the white background and below everything else.
        let background = svg.find("/>").map_or(0, |end| end + 3);
        svg.insert_str(background, &image);
    }
    Ok(scale_to_pixels(&svg, SIZE))
}

/// Returns the colour of a class. The 10 colours repeat, also for negative classes.
fn class_colour(class: i64) -> RGBColor {
    colour(class.rem_euclid(10) as usize)
}

/// Draws axes and points. Sets `plotting_area` to the position of the plotting area in drawing units (see [`UNITS_PER_PIXEL`]): its horizontal and its
/// vertical range.
fn draw_chart(
    svg: &mut String,
    plotting_area: &mut (std::ops::Range<i32>, std::ops::Range<i32>),
    title: &str,
    x_range: (f64, f64),
    y_range: (f64, f64),
    points: &[(&[f64; 2], i64)],
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, (SIZE.0 * UNITS_PER_PIXEL, SIZE.1 * UNITS_PER_PIXEL)).into_drawing_area();
    area.fill(&WHITE).map_err(|error| error.to_string())?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, text_style(22))
        .margin(16 * UNITS_PER_PIXEL)
        .x_label_area_size(34 * UNITS_PER_PIXEL)
        .y_label_area_size(54 * UNITS_PER_PIXEL)
        .build_cartesian_2d(x_range.0..x_range.1, y_range.0..y_range.1)
        .map_err(|error| error.to_string())?;
    let [wide, high] = [x_range, y_range].map(|(low, high)| low.abs().max(high.abs()));
    let (x_label, y_label) = (|x: &f64| format_tick(*x, wide), |y: &f64| format_tick(*y, high));
    let mut mesh = chart.configure_mesh();
    mesh.axis_style(INK.stroke_width(UNITS_PER_PIXEL))
        .bold_line_style(GRID.stroke_width(UNITS_PER_PIXEL))
        .light_line_style(TRANSPARENT);
    mesh.label_style(text_style(14)).set_all_tick_mark_size(5 * UNITS_PER_PIXEL);
    mesh.x_label_formatter(&x_label).y_label_formatter(&y_label);
    mesh.draw().map_err(|error| error.to_string())?;
    *plotting_area = chart.plotting_area().get_pixel_range();
    let circles = points.iter().flat_map(|&(&[x, y], class)| {
        [
            Circle::new((x, y), 4 * UNITS_PER_PIXEL, class_colour(class).filled()),
            Circle::new((x, y), 4 * UNITS_PER_PIXEL, WHITE.stroke_width(UNITS_PER_PIXEL)),
        ]
    });
    chart.draw_series(circles).map_err(|error| error.to_string())?;
    area.present().map_err(|error| error.to_string())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use wengert_tensor::ops::{Comparison as _, Views as _};

    use super::*;

    #[test]
    fn points_have_the_colours_of_their_classes() {
        let places = Tensor::from([[0.0, 1.0], [2.0, 3.0], [f64::NAN, 1.0]]);
        let svg = points("Points", &places, &Tensor::from([0, 1, 1])).unwrap();
        assert_eq!(svg.matches("<circle").count(), 4);
        assert!(svg.contains("#1F77B4") && svg.contains("#D66014"));
        let left = |x: &Tensor<f64>| x.select(1, 0).gt(1.0).cast();
        let svg = decision_boundary("Points", &places, &Tensor::from([0, 1, 1]), left).unwrap();
        assert!(svg.find("<image").unwrap() < svg.find("<circle").unwrap());
        assert!(points("Nothing", &Tensor::<f32>::zeros([0, 2]), &Tensor::zeros([0])).is_ok());
        assert!(points("One", &Tensor::<f32>::zeros([1, 2]), &Tensor::zeros([1])).is_ok());
        assert!(points("Wrong", &Tensor::<f32>::zeros([1, 3]), &Tensor::zeros([1])).is_err());
        assert!(decision_boundary("Wrong", &places, &Tensor::from([0, 1, 1]), |_| Tensor::zeros([1])).is_err());
    }

    #[test]
    fn huge_coordinates_are_left_out_and_close_ones_are_drawn() {
        for (low, high, drawn) in [(-1e308, 1e308, 1), (0.0, 2e12, 2), (-1e12, 1e12, 3), (1.0, 1.0 + f64::EPSILON, 3)] {
            let places = Tensor::from([[low, 0.0], [high, 1.0], [0.0, 0.5]]);
            let svg = points("Huge", &places, &Tensor::from([0, 1, 1])).unwrap();
            assert_eq!(svg.matches("<circle").count(), 2 * drawn, "{low} {high}");
        }
        let close = Tensor::from([[1.0, 1e12], [1.0 + f64::EPSILON, 1e12 - 1e-4]]);
        assert!(points("Close", &close, &Tensor::from([0, 1])).is_ok());
    }
}
