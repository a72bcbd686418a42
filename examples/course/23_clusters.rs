//! 23. Clusters by broadcasting: k-means, which needs no gradient.
//!
//! The differences of every point and every centre are `[n, 1, 2] - [k, 2]`, which is `[n, k, 2]`. Each round gives every point to
//! its nearest centre and moves every centre to the mean of its points. (Lloyd 1957.)

use std::process::ExitCode;

use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, run};

fn main() -> ExitCode {
    let options = Options::new("23_clusters", "k-means by broadcasting");
    run(options.count_in("clusters", 5, [1, 10], "Number of clusters"), clusters)
}

/// Returns the squared distance of every point `[n, 2]` to every centre `[k, 2]`: `[n, k]`.
fn distances(points: &Tensor<f64>, centres: &Tensor<f64>) -> Tensor<f64> {
    (points.unsqueeze(1) - centres).square().sum(2)
}

fn clusters(options: &Options) -> Result {
    let k: usize = options.get("clusters");
    let generator = &mut Generator::new(options.seed());
    // Five groups of 80 points.
    let heaps = Tensor::from([[-2.0, -1.5], [2.0, -1.8], [0.0, 0.3], [-2.2, 2.0], [2.1, 1.7]]);
    let points = (heaps.unsqueeze(1) + Tensor::randn([5, 80, 2], generator) * 0.5).reshape([400, 2]);

    // The first centre begins at the first point. Each other centre begins at the point that is farthest from the centres so far.
    let mut centres = points.narrow(0, 0, 1);
    while centres.shape()[0] < k {
        let farthest = distances(&points, &centres).amin(1).argmax(0).item();
        centres = cat(&[centres, points.narrow(0, farthest, 1)], 0);
    }
    for round in 1.. {
        let nearest = distances(&points, &centres).argmin(1); // [n]
        let member = one_hot(&nearest, Some(k)).cast::<f64>(); // [n, k]
        // The mean of the points of each cluster. An empty cluster keeps its centre.
        let count = member.sum(0).unsqueeze(1); // [k, 1]
        let means = member.t().matmul(&points) / count.clamp_min(1.0);
        let moved = where_(&count.gt(0.0), &means, &centres);
        let shift = (&moved - &centres).abs().amax(..).item();
        centres = moved;
        println!("round {round:>2}   mean square distance {:.4}", distances(&points, &centres).amin(1).mean(..).item());
        if shift == 0.0 {
            break;
        }
    }
    let nearest = distances(&points, &centres).argmin(1);
    let mut chart = Chart::new("k-means", "x", "y").ranges(-4.0..4.0, -4.0..4.0).regions(|middles| {
        let middles = Tensor::from_fn([middles.len(), 2], |i| [middles[i[0]].0, middles[i[0]].1][i[1]]);
        distances(&middles, &centres).argmin(1).iter().map(|cluster| cluster as usize).collect()
    });
    for cluster in 0..k {
        chart = chart.points("", cluster, pairs(&points.masked_select(&nearest.eq(cluster as i64).unsqueeze(1))));
    }
    options.write("clusters.svg", chart.crosses("centres", 7, pairs(&centres)).to_svg()?)
}

/// Returns the numbers in pairs: the first two, the next two, and so on.
fn pairs(numbers: &Tensor<f64>) -> Vec<(f64, f64)> {
    numbers.to_vec().chunks(2).map(|pair| (pair[0], pair[1])).collect()
}
