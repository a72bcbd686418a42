//! Measures the time of sums over ranks, fits a cost model, and predicts the times on larger clusters.
//!
//! ```text
//! mpirun -n 4 target/release/examples/reductions                # measure here
//! cargo run -p wengert-distributed --example reductions -- --plot docs/distributed.svg
//! ```
//!
//! The model (Hockney 1994; Thakur, Rabenseifner and Gropp 2005): a message of n bytes takes α + βn seconds. Two kinds of sums of a vector
//! over N ranks are compared. The first kind has the same bits in every run with this number of ranks. Each rank sends 2 (N - 1) messages,
//! which together have 2 (N - 1) / N times the bytes of the vector. It also sends N - 1 messages to check that the ranks agree. The second
//! kind is MPI's own sum. Each rank sends at best 2 log₂ N messages and the same number of bytes. The model leaves out the check of the
//! second kind.

use std::error::Error as StdError;
use std::process::ExitCode;
use std::time::Instant;

use lexopt::prelude::*;
use plotters::prelude::*;
use wengert_distributed::{Group, Reduce, run};
use wengert_nn::write_atomically;
use wengert_tensor::Tensor;

/// Networks between two machines: name, latency of a message in seconds, and seconds per byte. They are 10 Gbit/s Ethernet over TCP, and
/// 100 Gbit/s InfiniBand.
const NETWORKS: [(&str, f64, f64); 2] =
    [("10 Gbit/s, 20 µs", 20e-6, 8.0 / 10e9), ("100 Gbit/s, 3 µs", 3e-6, 8.0 / 100e9)];

/// Models: name, number of f32 parameters, and seconds per step on one machine. The step computes either the machine's own batch (weak
/// scaling) or the whole batch, which N machines divide (strong scaling).
const MODELS: [(&str, f64, f64); 3] =
    [("10 thousand parameters, 5 ms", 1e4, 5e-3), ("10 million, 200 ms", 1e7, 0.2), ("1 billion, 20 s", 1e9, 20.0)];

/// Returns the predicted time, in seconds, of a sum of vectors of `bytes` bytes over `ranks` ranks. A message of n bytes takes `alpha` +
/// `beta` n seconds.
fn predicted(ranks: f64, bytes: f64, alpha: f64, beta: f64, by_mpi: bool) -> f64 {
    let messages = if by_mpi { 2.0 * ranks.log2() } else { 3.0 * (ranks - 1.0) };
    messages * alpha + 2.0 * (ranks - 1.0) / ranks * bytes * beta
}

fn main() -> ExitCode {
    let mut parser = lexopt::Parser::from_env();
    match parser.next() {
        Ok(None) => run(measure),
        Ok(Some(Long("plot"))) => {
            match parser.value().map_err(Into::into).and_then(|path| plot(&path.to_string_lossy())) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("error: {error}");
                    ExitCode::FAILURE
                }
            }
        }
        _ => {
            eprintln!("Usage: [mpirun -n RANKS] reductions [--plot <FILE>]");
            ExitCode::from(2)
        }
    }
}

/// Returns the median time of one call, in seconds. All ranks begin each call together.
fn seconds(
    group: &Group,
    mut call: impl FnMut() -> wengert_distributed::Result<()>,
) -> wengert_distributed::Result<f64> {
    let mut times = Vec::new();
    let first = Instant::now();
    while times.len() < 7 || (times.len() < 101 && !group.any(first.elapsed().as_secs_f64() > 2.0)?) {
        group.barrier()?;
        let began = Instant::now();
        call()?;
        times.push(began.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn measure(group: &Group) -> Result<(), Box<dyn StdError>> {
    let ranks = group.size() as f64;
    group.print(format_args!("{} ranks; median ms: the sum in the fixed tree, MPI's own sum", group.size()));
    let mut points = Vec::new();
    for power in [0, 8, 12, 14, 16, 18, 20, 22] {
        let tensor = Tensor::<f32>::ones([1 << power]);
        let tree = seconds(group, || group.all_reduce(&tensor, Reduce::Sum).map(drop))?;
        let by_mpi = seconds(group, || group.all_reduce_fast(&tensor).map(drop))?;
        let bytes = 4.0 * f64::from(1 << power);
        group.print(format_args!("{bytes:>10} bytes   {:>9.3}   {:>9.3}", 1e3 * tree, 1e3 * by_mpi));
        points.push((bytes, tree, by_mpi));
    }
    if group.size() == 1 {
        return Ok(());
    }
    for (name, by_mpi) in [("tree", false), ("MPI's", true)] {
        // Fits a straight line through the times of all sizes, by least squares of the relative errors.
        let time = |&(_, tree, own): &(f64, f64, f64)| if by_mpi { own } else { tree };
        let [mut s, mut sx, mut sxx, mut sy, mut sxy] = [0.0; 5];
        for point in &points {
            let (x, y) = (point.0, time(point));
            let weight = 1.0 / (y * y);
            (s, sx, sxx, sy, sxy) =
                (s + weight, sx + weight * x, sxx + weight * x * x, sy + weight * y, sxy + weight * x * y);
        }
        let slope = (s * sxy - sx * sy) / (s * sxx - sx * sx);
        let constant = (sy - slope * sx) / s;
        let alpha = constant / predicted(ranks, 0.0, 1.0, 0.0, by_mpi);
        let beta = slope / (2.0 * (ranks - 1.0) / ranks);
        let worst = points.iter().map(|point| {
            let model = predicted(ranks, point.0, alpha, beta, by_mpi);
            (model / time(point)).max(time(point) / model)
        });
        let worst = worst.fold(1.0, f64::max);
        group.print(format_args!(
            "{name}: α = {:.1} µs, β = {:.3} ns a byte ({:.1} Gbit/s); the model is off by a factor of {worst:.2} at most",
            1e6 * alpha,
            1e9 * beta,
            8e-9 / beta,
        ));
    }
    Ok(())
}

/// Returns the fraction of a step's time in which a machine computes. For the rest of the time, the machine waits for messages.
fn efficiency(ranks: f64, model: (&str, f64, f64), network: (&str, f64, f64), strong: bool, by_mpi: bool) -> f64 {
    let compute = if strong { model.2 / ranks } else { model.2 };
    compute / (compute + predicted(ranks, 4.0 * model.1, network.1, network.2, by_mpi))
}

/// The width and height of the picture in pixels.
const SIZE: (u32, u32) = (1100, 520);
/// The number of drawing units per pixel. plotters rounds each coordinate to a whole unit.
const UNITS: u32 = 10;

/// Draws the predictions for the sum in the fixed tree, and prints the predictions for both kinds of sums as a table.
fn plot(path: &str) -> Result<(), Box<dyn StdError>> {
    println!("| scaling | model | network | sum | 2 | 8 | 64 | 512 | 4096 |\n|---|---|---|---|---|---|---|---|---|");
    for strong in [false, true] {
        for model in MODELS {
            for network in NETWORKS {
                for by_mpi in [false, true] {
                    let cell = |ranks| format!("{:.0}%", 100.0 * efficiency(ranks, model, network, strong, by_mpi));
                    let cells = [2.0, 8.0, 64.0, 512.0, 4096.0].map(cell).join(" | ");
                    let (scaling, sum) =
                        (["weak", "strong"][usize::from(strong)], ["tree", "MPI"][usize::from(by_mpi)]);
                    println!("| {scaling} | {} | {} | {sum} | {cells} |", model.0, network.0);
                }
            }
        }
    }
    let mut svg = String::new();
    draw(&mut svg).map_err(|error| error.to_string())?;
    let header = |units: u32| format!("width=\"{}\" height=\"{}\"", SIZE.0 * units, SIZE.1 * units);
    Ok(write_atomically(path, svg.replacen(&header(UNITS), &header(1), 1).as_bytes())?)
}

fn draw(svg: &mut String) -> Result<(), Box<dyn StdError + '_>> {
    let ink = RGBColor(60, 60, 60);
    let text = |size: u32| ("sans-serif", size * UNITS).into_font().color(&ink);
    let area = SVGBackend::with_string(svg, (SIZE.0 * UNITS, SIZE.1 * UNITS)).into_drawing_area();
    area.fill(&WHITE)?;
    let colours = [RGBColor(31, 119, 180), RGBColor(214, 96, 20), RGBColor(44, 140, 60)];
    for (strong, panel) in [false, true].into_iter().zip(area.split_evenly((1, 2))) {
        let title = ["Weak scaling: a batch for each rank", "Strong scaling: one batch for all"][usize::from(strong)];
        let mut chart = ChartBuilder::on(&panel)
            .caption(title, text(20))
            .margin(15 * UNITS)
            .x_label_area_size(45 * UNITS)
            .y_label_area_size(55 * UNITS)
            .build_cartesian_2d(1.0..12.0, 0.0..1.0)?;
        chart
            .configure_mesh()
            .x_desc("ranks")
            .y_desc("part of the time spent computing")
            .axis_style(ink.stroke_width(UNITS))
            .set_all_tick_mark_size(5 * UNITS)
            .bold_line_style(RGBColor(232, 232, 232).stroke_width(UNITS))
            .light_line_style(TRANSPARENT)
            .label_style(text(14))
            .axis_desc_style(text(15))
            .x_labels(12)
            .x_label_formatter(&|power: &f64| format!("{}", power.exp2()))
            .y_label_formatter(&|part: &f64| format!("{:.0}%", 100.0 * part))
            .draw()?;
        for (model, colour) in MODELS.into_iter().zip(colours) {
            for (network, width) in NETWORKS.into_iter().zip([1, 3]) {
                let point = |power: i32| {
                    let power = f64::from(power) / 4.0;
                    (power, efficiency(power.exp2(), model, network, strong, false))
                };
                let line = LineSeries::new((4..=48).map(point), colour.stroke_width(width * UNITS));
                let length = (22 * UNITS) as i32;
                let legend =
                    move |(x, y)| PathElement::new([(x, y), (x + length, y)], colour.stroke_width(width * UNITS));
                chart.draw_series(line)?.label(format!("{}; {}", model.0, network.0)).legend(legend);
            }
        }
        if strong {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperRight)
                .background_style(WHITE)
                .border_style(RGBColor(232, 232, 232).stroke_width(UNITS))
                .legend_area_size(30 * UNITS)
                .margin(10 * UNITS)
                .label_font(text(12))
                .draw()?;
        }
    }
    area.present()?;
    Ok(())
}
