//! Two classes of points in the plane.

use std::f32::consts::PI;

use wengert::nn::Generator;
use wengert::prelude::*;

use super::Chart;

/// Returns the points `[n, 2]` of two half circles that reach into each other, and the class of each point.
pub fn moons(n: usize, generator: &mut Generator) -> (Tensor, Tensor<i64>) {
    let angle = Tensor::<f32>::rand([n], generator) * PI;
    let class = Tensor::arange(n) % 2;
    let up = class.eq(0);
    let x = where_(&up, &angle.cos(), &(1.0 - angle.cos()));
    let y = where_(&up, &angle.sin(), &(0.5 - angle.sin()));
    (stack(&[x, y], 1) + Tensor::randn([n, 2], generator) * 0.12, class)
}

/// Draws the moons over the regions of the two predicted classes. `classify` maps points `[m, 2]` to scores `[m, 2]`.
pub fn moons_chart(
    title: String,
    points: &Tensor,
    classes: &Tensor<i64>,
    classify: impl FnOnce(&Tensor) -> Tensor,
) -> Chart {
    let points_of_class = |class: i64| {
        let coordinates = points.masked_select(&classes.eq(class).unsqueeze(1)).to_vec();
        coordinates.chunks(2).map(|p| (p[0].into(), p[1].into())).collect::<Vec<(f64, f64)>>()
    };
    let chart = Chart::new(title, "x", "y").ranges(-1.6..2.6, -1.2..1.7).regions(|middles| {
        let middles = Tensor::from_fn([middles.len(), 2], |i| [middles[i[0]].0, middles[i[0]].1][i[1]] as f32);
        classify(&middles).argmax(1).iter().map(|class| class as usize).collect()
    });
    chart.points("class 0, upper moon", 0, points_of_class(0)).points("class 1, lower moon", 1, points_of_class(1))
}
