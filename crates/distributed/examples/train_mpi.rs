//! Trains one of five small models on any number of machines. The result does not depend on that number, unless `--fast` is given.
//!
//! ```text
//! cargo run --release -p wengert-distributed --example train_mpi -- --model cnn
//! cargo build --release -p wengert-distributed --features mpi --example train_mpi
//! mpirun -n 4 target/release/examples/train_mpi --model transformer --sharded
//! ```
//!
//! A run that finds its checkpoint continues from there, on any number of ranks. With `--out`, SIGTERM and SIGUSR1 write a checkpoint. They
//! end the run. The checkpoint has the same bytes for any number of ranks, unless `--fast` is given.

use std::error::Error as StdError;
use std::fs;
use std::path::PathBuf;
use std::process::{ExitCode, exit};
use std::thread::sleep;
use std::time::{Duration, Instant};

use lexopt::prelude::*;
use wengert_autograd::prelude::*;
use wengert_distributed::{DataParallel, Group, Rows, StopSignal, SyncBatchNorm, run};
use wengert_nn::{
    Adam, AdamW, AttentionMasks, BatchNorm2d, Checkpoint, Conv2d, DataLoader, Dataset, Embedding, Flatten, Generator,
    Layer, LayerNorm, LearnedPositions, Linear, MaxPool2d, Module, Normalize, Optimizer, ReLU, Samples, Sequential,
    Sgd, TransformerEncoder, TransformerOptions, Unflatten, accuracy, cross_entropy,
};

const USAGE: &str = "\
Trains a small model on any number of machines

Usage: [mpirun -n RANKS] train_mpi [OPTIONS]

Options:
      --model <MODEL>         mlp, deep (four layers of 1,024), cnn (handwritten digits), sync-cnn (the same with the statistics
                              of all ranks) or transformer (characters) [default: mlp]
      --optimizer <NAME>      sgd or adamw [default: adamw]
      --steps <STEPS>         [default: 100]
      --batch <ROWS>          Rows of a batch, over all ranks [default: 64]
      --shards <SHARDS>       Number of shards of a batch; the result depends on it [default: 8]
      --send-every <SHARDS>   Send the sum of this number of shards while the next are computed
      --bucket <KB>           Size of the buckets in which gradients are sent, in kB
      --sharded               Divide the optimiser's states among the ranks
      --sharded-parameters    Divide the parameters too
      --fast                  Sum by MPI's own all-reduce: the result depends on the number of ranks
      --out <FILE>            Checkpoint to continue from and to write
      --save-every <STEPS>    Also write the checkpoint after each multiple of this number of steps
      --delay <MS>            Time to sleep for each shard, to imitate a larger model
  -h, --help                  Print help";

const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/digits.csv.gz");
const TEXT: &str = include_str!("../../../LICENSE-APACHE");
/// The length of the transformer's input, in characters.
const WINDOW: usize = 32;

struct Arguments {
    model: String,
    adamw: bool,
    steps: u64,
    batch: usize,
    shards: usize,
    send_every: Option<usize>,
    bucket: Option<usize>,
    sharded: bool,
    sharded_parameters: bool,
    fast: bool,
    out: Option<PathBuf>,
    save_every: Option<u64>,
    delay: Duration,
}

/// Returns the arguments of the command line. `--help` prints the usage and ends the program.
fn arguments() -> Result<Arguments, lexopt::Error> {
    let mut arguments = Arguments {
        model: "mlp".to_owned(),
        adamw: true,
        steps: 100,
        batch: 64,
        shards: 8,
        send_every: None,
        bucket: None,
        sharded: false,
        sharded_parameters: false,
        fast: false,
        out: None,
        save_every: None,
        delay: Duration::ZERO,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("model") => arguments.model = parser.value()?.string()?,
            Long("optimizer") => {
                arguments.adamw = match parser.value()?.string()?.as_str() {
                    "adamw" => true,
                    "sgd" => false,
                    other => return Err(format!("there is no optimiser '{other}': sgd or adamw").into()),
                }
            }
            Long("steps") => arguments.steps = parser.value()?.parse()?,
            Long("batch") => arguments.batch = parser.value()?.parse()?,
            Long("shards") => arguments.shards = parser.value()?.parse()?,
            Long("send-every") => arguments.send_every = Some(parser.value()?.parse()?),
            Long("bucket") => arguments.bucket = Some(1000 * parser.value()?.parse::<usize>()?),
            Long("sharded") => arguments.sharded = true,
            Long("sharded-parameters") => arguments.sharded_parameters = true,
            Long("fast") => arguments.fast = true,
            Long("out") => arguments.out = Some(parser.value()?.into()),
            Long("save-every") => arguments.save_every = Some(parser.value()?.parse()?),
            Long("delay") => arguments.delay = Duration::from_secs_f64(parser.value()?.parse::<f64>()? / 1000.0),
            Short('h') | Long("help") => {
                println!("{USAGE}");
                exit(0);
            }
            other => return Err(other.unexpected()),
        }
    }
    if arguments.batch == 0 || arguments.save_every == Some(0) {
        return Err("--batch and --save-every must be greater than 0".into());
    }
    Ok(arguments)
}

/// A learning task: a data set, a model, and the logits of the model for a batch.
trait Task {
    type Input: Element;
    type Model: Module;

    fn rows(&self) -> usize;
    fn batch(&self, rows: &[usize]) -> wengert_nn::Result<(Tensor<Self::Input>, Tensor<i64>)>;
    fn model(&self, generator: &mut Generator) -> Self::Model;
    /// Records the logits of the model for a batch of inputs: `[n, classes]`, with one row for each target.
    fn logits<'t>(&self, model: &Self::Model, tape: &'t Tape, inputs: &Tensor<Self::Input>) -> Var<'t>;
}

/// The task of classifying handwritten digits. Its inputs are images `[n, 64]`.
struct Digits {
    samples: Samples,
    network: fn(&mut Generator) -> Sequential,
}

impl Digits {
    fn new(network: fn(&mut Generator) -> Sequential) -> wengert_nn::Result<Self> {
        let samples = Samples::<Tensor>::read_csv(DIGITS, 10)?;
        let scale = Normalize::fit_range(samples.inputs())?;
        Ok(Digits { samples: samples.normalized(&scale)?, network })
    }
}

fn mlp(generator: &mut Generator) -> Sequential {
    let hidden = Linear::new(64, 128, generator);
    Sequential::new().add(hidden).add(ReLU).add(Linear::new(128, 10, generator))
}

fn deep(generator: &mut Generator) -> Sequential {
    let mut model = Sequential::new().add(Linear::new(64, 1024, generator)).add(ReLU);
    for _ in 0..3 {
        model = model.add(Linear::new(1024, 1024, generator)).add(ReLU);
    }
    model.add(Linear::new(1024, 10, generator))
}

/// Returns a convolutional network. `norm` makes a normalization layer for a given number of channels.
fn cnn<N: Layer + 'static>(generator: &mut Generator, norm: fn(usize) -> N) -> Sequential {
    Sequential::new()
        .add(Unflatten::new(1, [1, 8, 8]))
        .add(Conv2d::builder(1, 16, 3).padding(1).build(generator))
        .add(norm(16))
        .add(ReLU)
        .add(Conv2d::builder(16, 32, 3).padding(1).build(generator))
        .add(norm(32))
        .add(ReLU)
        .add(MaxPool2d::new(2))
        .add(Flatten::new(1, -1))
        .add(Linear::new(32 * 4 * 4, 10, generator))
}

impl Task for Digits {
    type Input = f32;
    type Model = Sequential;

    fn rows(&self) -> usize {
        self.samples.len()
    }

    fn batch(&self, rows: &[usize]) -> wengert_nn::Result<(Tensor, Tensor<i64>)> {
        self.samples.batch(rows)
    }

    fn model(&self, generator: &mut Generator) -> Sequential {
        (self.network)(generator)
    }

    fn logits<'t>(&self, model: &Sequential, tape: &'t Tape, inputs: &Tensor) -> Var<'t> {
        model.forward(tape.constant(inputs))
    }
}

/// The task of predicting the next character of a text.
struct Characters {
    text: Vec<i64>,
}

/// A causal transformer, which predicts the next character.
#[derive(Module)]
struct Transformer {
    embedding: Embedding,
    positions: LearnedPositions,
    encoder: TransformerEncoder,
    norm: LayerNorm,
    head: Linear,
}

impl Task for Characters {
    type Input = i64;
    type Model = Transformer;

    fn rows(&self) -> usize {
        self.text.len() - WINDOW
    }

    fn batch(&self, rows: &[usize]) -> wengert_nn::Result<(Tensor<i64>, Tensor<i64>)> {
        let window = |shift: usize| Tensor::from_fn([rows.len(), WINDOW], |at| self.text[rows[at[0]] + at[1] + shift]);
        Ok((window(0), window(1)))
    }

    fn model(&self, generator: &mut Generator) -> Transformer {
        let options = TransformerOptions::new(64, 4).dim_feedforward(256).batch_first().norm_first().gelu();
        Transformer {
            embedding: Embedding::new(128, 64, generator),
            positions: LearnedPositions::new(WINDOW, 64, generator),
            encoder: TransformerEncoder::new(&options, 2, generator),
            norm: LayerNorm::new(64),
            head: Linear::new(64, 128, generator),
        }
    }

    fn logits<'t>(&self, model: &Transformer, tape: &'t Tape, inputs: &Tensor<i64>) -> Var<'t> {
        let x = model.positions.forward(model.embedding.forward(tape, inputs));
        let y = model.encoder.forward_masked(x, AttentionMasks::causal());
        model.head.forward(model.norm.forward(y)).flatten(0, 1)
    }
}

/// Trains the model, from its checkpoint if there is one. Prints the loss and the accuracy, unless a signal ended the
/// training.
fn train<K: Task, O: Optimizer>(
    group: &Group,
    arguments: &Arguments,
    task: &K,
    optimizer: O,
) -> Result<(), Box<dyn StdError>> {
    let mut generator = Generator::new(0);
    let mut model = task.model(&mut generator);
    let mut parallel = data_parallel(group, arguments, &mut model, optimizer)?;
    let mut first = 0;
    if let Some(out) = arguments.out.as_ref().filter(|out| out.exists()) {
        let saved = Checkpoint::open(out)?;
        parallel.load(&saved, "optimizer", &mut model)?;
        (generator, first) = (saved.generator()?, saved.integer("step")?);
        group.print(format_args!("goes on at step {first}"));
    }
    if arguments.sharded_parameters {
        parallel.release(&mut model)?;
    }
    let Some(loss) = take_steps(group, arguments, task, (&mut parallel, &mut model), first, generator)? else {
        return Ok(());
    };
    parallel.gather(&mut model)?;
    let [right, count] = group.sum_rows(task.rows().min(512), 8, |rows| {
        let rows: Vec<usize> = rows.collect();
        let (inputs, targets) = task.batch(&rows)?;
        let targets = targets.flatten(0, -1);
        let logits = task.logits(&model, &Tape::new(), &inputs).value();
        Ok([accuracy(&logits, &targets) * targets.numel() as f64, targets.numel() as f64])
    })?;
    group.print(format_args!("{loss}, accuracy {:.2}%", 100.0 * right / count));
    Ok(())
}

/// Returns a data-parallel optimiser with the settings of the command line.
fn data_parallel<'g, O: Optimizer>(
    group: &'g Group,
    arguments: &Arguments,
    model: &mut impl Module,
    optimizer: O,
) -> wengert_distributed::Result<DataParallel<'g, O>> {
    let mut parallel = DataParallel::new(group, model, optimizer)?.shards(arguments.shards).clip_norm(1.0);
    if let Some(shards) = arguments.send_every {
        parallel = parallel.send_every(shards);
    }
    if arguments.fast {
        parallel = parallel.fast();
    }
    if let Some(bytes) = arguments.bucket {
        parallel = parallel.bucket_bytes(bytes);
    }
    if arguments.sharded || arguments.sharded_parameters {
        parallel = parallel.sharded(model);
    }
    Ok(parallel)
}

/// Takes the remaining steps, from number `first` on, and saves checkpoints if `--out` is given. Returns a text with
/// the last loss, or `None` if a signal ended the training run.
fn take_steps<K: Task, O: Optimizer>(
    group: &Group,
    arguments: &Arguments,
    task: &K,
    (parallel, model): (&mut DataParallel<O>, &mut K::Model),
    first: u64,
    mut generator: Generator,
) -> Result<Option<String>, Box<dyn StdError>> {
    let Arguments { steps, batch, .. } = *arguments;
    let stop = StopSignal::listen()?;
    // All ranks draw the same order of rows. Each rank reads only the rows of its shards (parts of each batch).
    let loader = DataLoader::new(Rows::new(task.rows()), batch).shuffle().seed(1).drop_last();
    let (mut began, mut before) = (Instant::now(), group.traffic());
    let (mut timed, mut loss) = (first, None);
    let mut step = first;
    'epochs: while step < steps {
        let (epoch, at) = (step / loader.len() as u64, step % loader.len() as u64);
        for rows in loader.epoch(epoch).starting_at(at as usize) {
            let rows = rows?;
            let result = parallel.step_recorded(model, rows.len(), &mut generator, |model, tape, shard| {
                let (inputs, targets) = task.batch(&rows[shard.rows.clone()])?;
                sleep(arguments.delay);
                Ok(cross_entropy(&task.logits(model, tape, &inputs), &targets.flatten(0, -1)))
            })?;
            step += 1;
            loss = Some(result.loss);
            if step == first + 1 {
                // The first step is not timed, because it plans the computations and opens connections.
                (began, before, timed) = (Instant::now(), group.traffic(), step);
            }
            if step.is_multiple_of(10) {
                group.print(format_args!("step {step}: loss {:.4}", result.loss));
            }
            let asked = group.any(stop.came())?;
            let due = arguments.save_every.is_some_and(|every| step.is_multiple_of(every));
            if let Some(out) = arguments.out.as_ref().filter(|_| asked || due || step == steps) {
                parallel.gather(model)?;
                let checkpoint = parallel.checkpoint("optimizer", model)?;
                if arguments.sharded_parameters {
                    parallel.release(model)?;
                }
                let more = |checkpoint: Checkpoint| checkpoint.generator(&generator).integer("step", step);
                group.save(checkpoint.map(more), out)?;
            }
            if asked {
                group.print(format_args!("asked to end after step {step}"));
                return Ok(None);
            }
            if step == steps {
                break 'epochs;
            }
        }
    }
    report(group, parallel, model, (began, before, step - timed), batch);
    // If the checkpoint belongs to a finished training run, no step is made, so there is no loss to report.
    Ok(Some(loss.map_or("no step was left to make".to_owned(), |loss| format!("loss {loss:.6}"))))
}

/// Prints the speed, traffic and memory of rank 0. Prints nothing if no step was timed.
fn report<O: Optimizer>(
    group: &Group,
    parallel: &DataParallel<O>,
    model: &impl Module,
    (began, before, steps): (Instant, wengert_distributed::Traffic, u64),
    batch: usize,
) {
    if steps == 0 {
        return;
    }
    let (seconds, count) = (began.elapsed().as_secs_f64(), steps as f64);
    let sent = (group.traffic().bytes - before.bytes) as f64 / count;
    let messages = (group.traffic().messages - before.messages) as f64 / count;
    let memory = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = memory.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("?").trim().to_owned();
    group.print(format_args!(
        "{} ranks: {:.2} ms a step, {:.0} rows/s; rank 0 sends {:.1} kB in {messages:.1} messages a step; {} parameters, {} bytes \
         of them and {} bytes of optimiser states on rank 0; peak memory {peak}",
        group.size(),
        1000.0 * seconds / count,
        batch as f64 * count / seconds,
        sent / 1000.0,
        model.num_parameters(),
        parallel.parameter_bytes(model),
        parallel.state_bytes(model),
    ));
}

fn main() -> ExitCode {
    let refused = |error| {
        eprintln!("error: {error}\n\n{USAGE}");
        ExitCode::from(2)
    };
    arguments().map_or_else(refused, |arguments| run(|group| train_chosen(group, &arguments)))
}

fn train_chosen(group: &Group, arguments: &Arguments) -> Result<(), Box<dyn StdError>> {
    match arguments.model.as_str() {
        "mlp" => with_optimizer(group, arguments, &Digits::new(mlp)?),
        "deep" => with_optimizer(group, arguments, &Digits::new(deep)?),
        "cnn" => with_optimizer(group, arguments, &Digits::new(|generator| cnn(generator, BatchNorm2d::new))?),
        "sync-cnn" => with_optimizer(group, arguments, &Digits::new(|generator| cnn(generator, SyncBatchNorm::new))?),
        "transformer" => {
            let text = TEXT.bytes().map(|byte| i64::from(byte.min(127))).collect();
            with_optimizer(group, arguments, &Characters { text })
        }
        other => Err(format!("there is no model '{other}'; see --help").into()),
    }
}

fn with_optimizer<K: Task>(group: &Group, arguments: &Arguments, task: &K) -> Result<(), Box<dyn StdError>> {
    if arguments.adamw {
        let adamw: Adam = AdamW::new(3e-3);
        train(group, arguments, task, adamw)
    } else {
        train(group, arguments, task, Sgd::new(0.05).momentum(0.9))
    }
}
