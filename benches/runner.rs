//! The protocol of the programs that are timed beside PyTorch, jax and other peers.
//!
//! The program reads names from standard input, one per line. The environment variable `WORKLOADS` names a JSON file with the table,
//! `{name: [kind, …]}`. The program answers each name with one line, `{"name": …, "ns": …, "first_ns": …}` or `{"name": …, "error": …}`.
//! `ns` is the median time of an iteration in nanoseconds, and `first_ns` the time of the first iteration.

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use std::{env, fs};

use serde_json::{Value, json};

/// One iteration of a workload.
pub type Step = Box<dyn FnMut()>;

/// Answers all names. `build` makes the step of a workload from its kind and the rest of its row. Samples of a workload
/// are taken for the time `budget`, and at least five. Returns an error if the table or the standard input cannot be
/// read, or the output cannot be written.
pub fn answer(build: impl Fn(&str, &[Value]) -> Result<Step, String>, budget: Duration) -> Result<(), Box<dyn Error>> {
    let path = env::var("WORKLOADS").map_err(|_| "WORKLOADS is to name the JSON file with the table of workloads")?;
    let table: HashMap<String, Vec<Value>> = serde_json::from_str(&fs::read_to_string(path)?)?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let name = line.trim();
        let run = || {
            let row = table.get(name).ok_or("not in the table")?;
            let [kind, numbers @ ..] = &row[..] else { return Err("a workload is a list".to_owned()) };
            let kind = kind.as_str().ok_or("the kind of a workload is a string")?;
            Ok(timed(build(kind, numbers)?, budget))
        };
        // If the library panics, the program answers with an error.
        let measured = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
            Err(panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "the computation panicked".to_owned()))
        });
        let answer = match measured {
            Ok((ns, first)) => json!({ "name": name, "ns": ns, "first_ns": first }),
            Err(error) => json!({ "name": name, "error": error }),
        };
        println!("{answer}");
        io::stdout().flush()?;
    }
    Ok(())
}

/// Reads a list of integers. Null is the empty list, and an integer is a list of one. Any other value is an error.
pub fn numbers(value: &Value) -> Result<Vec<isize>, String> {
    let list = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list.iter().map(Value::as_i64).collect(),
        number => number.as_i64().map(|number| vec![number]),
    };
    let list: Vec<i64> = list.ok_or_else(|| format!("{value} is not a list of integers"))?;
    Ok(list.into_iter().map(|number| number as isize).collect())
}

/// Returns two times in nanoseconds: of one iteration, as the median over samples, and of the first iteration. A sample takes 1 to 2 ms, or
/// is a single longer iteration.
fn timed(mut step: Step, budget: Duration) -> (f64, f64) {
    let mut seconds = || {
        let start = Instant::now();
        step();
        start.elapsed().as_secs_f64()
    };
    let [first, _, _, once] = std::array::from_fn(|_| seconds());
    let inner = ((0.002 / once.max(1e-9)) as usize).max(1);
    let end = Instant::now() + budget;
    let mut samples = Vec::new();
    while Instant::now() < end || samples.len() < 5 {
        let start = Instant::now();
        (0..inner).for_each(|_| step());
        samples.push(start.elapsed().as_secs_f64() / inner as f64);
    }
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    let median = if samples.len() % 2 == 1 { samples[middle] } else { (samples[middle - 1] + samples[middle]) / 2.0 };
    (median * 1e9, first * 1e9)
}
