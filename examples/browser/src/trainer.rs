//! The network, its data and its training.

use std::error::Error;

use wengert::nn::{
    Adam, AdamW, Batches, CrossEntropyLoss, DataLoader, Dataset, Generator, Optimizer, Samples, from_bytes, to_bytes,
};
use wengert::prelude::*;

use crate::drawing::{SQUARES, features};

/// A result whose error may have any type.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The number of classes, the digits 0 to 9.
pub const CLASSES: usize = 10;

/// The number of hidden units.
const HIDDEN: usize = 64;

/// The number of samples in a step.
const BATCH: usize = 32;

/// The largest possible number in the table: the count of black pixels in a square of 4 x 4 pixels.
const MOST_INK: f32 = 16.0;

type Batch = (Tensor, Tensor<i64>);

/// A training run in progress: the network, its optimiser and its data.
pub struct Trainer {
    model: Sequential,
    adam: Adam,
    generator: Generator,
    train: DataLoader<Batch>,
    test: Samples,
    /// The number of steps made.
    steps: u64,
    batches: Batches<Batch>,
}

impl Trainer {
    /// Starts a training run of a new network on the samples of `table`. A line of the table has 64 counts from 0 to 16 and the digit,
    /// separated by commas. A quarter of the samples is not trained on, and tests the network.
    ///
    /// # Errors
    ///
    /// If a line of the table does not have 64 numbers and a digit, or if there are fewer than two samples.
    pub fn new(table: &str, seed: u64) -> Result<Self> {
        let generator = &mut Generator::new(seed);
        let (train, test) = samples(table)?.random_split(0.25, generator)?;
        let model = Sequential::mlp(&[SQUARES, HIDDEN, CLASSES], ReLU, generator);
        // The next batches are made in advance on another thread. In a browser, they are made when they are needed.
        let train = DataLoader::new(train, BATCH).shuffle().seed(seed).prefetch(2);
        let batches = train.epoch(0);
        Ok(Trainer { model, adam: AdamW::new(0.003), generator: generator.clone(), train, test, steps: 0, batches })
    }

    /// Trains on the next batch and returns its loss. After the last batch of an epoch, the next call begins the next epoch.
    ///
    /// # Errors
    ///
    /// If the memory is too small.
    pub fn step(&mut self) -> Result<f32> {
        let (x, y) = match self.batches.next() {
            Some(batch) => batch?,
            None => {
                self.batches = self.train.epoch(self.epoch());
                self.batches.next().ok_or("the table has no samples")??
            }
        };
        let (model, criterion) = (&self.model, CrossEntropyLoss::new());
        let (loss, gradients) = Tape::training(&mut self.generator)
            .value_and_gradients(|tape| criterion.of(model.forward(tape.constant(&x)), &y));
        self.adam.step(&mut self.model, &gradients);
        self.steps += 1;
        Ok(loss)
    }

    /// Returns the number of complete epochs. After the last batch of an epoch, this epoch is complete.
    pub fn epoch(&self) -> u64 {
        self.steps / self.train.len() as u64
    }

    /// Returns the share of the test samples that the network reads correctly.
    pub fn accuracy(&self) -> f64 {
        let tape = Tape::new();
        accuracy(&self.model.forward(tape.constant(self.test.inputs())).value(), self.test.targets())
    }

    /// Returns the probability of each digit for a drawing (see [`features`]). Returns an empty vector if the drawing is
    /// empty or its image is not square.
    pub fn guess(&self, ink: &[u8]) -> Vec<f32> {
        let Some(shares) = features(ink) else { return Vec::new() };
        let tape = Tape::new();
        self.model.forward(tape.constant(Tensor::from([shares]))).softmax(1).value().to_vec()
    }

    /// Returns the network as a checkpoint, which PyTorch reads too.
    ///
    /// # Errors
    ///
    /// If the memory is too small.
    pub fn save(&self) -> Result<Vec<u8>> {
        Ok(to_bytes(&self.model)?)
    }

    /// Replaces the network by the one in a checkpoint, for example a file that PyTorch wrote.
    ///
    /// # Errors
    ///
    /// If the bytes are not a checkpoint of a network with the same layers. The network is then unchanged.
    pub fn load(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(from_bytes(&mut self.model, bytes)?)
    }
}

/// Returns the samples of the table, or an error that names the first wrong line.
fn samples(table: &str) -> Result<Samples> {
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (line, text) in table.lines().enumerate() {
        let row = text.split(',').map(|field| field.trim().parse::<f32>()).collect::<std::result::Result<Vec<_>, _>>();
        match row.as_deref() {
            Ok([counts @ .., digit])
                if counts.len() == SQUARES && digit.fract() == 0.0 && (0.0..CLASSES as f32).contains(digit) =>
            {
                x.extend(counts.iter().map(|count| count / MOST_INK));
                y.push(*digit as i64);
            }
            _ => return Err(format!("line {} is not {SQUARES} numbers and a digit", line + 1).into()),
        }
    }
    let shape = [y.len(), SQUARES];
    Ok(Samples::new(Tensor::from_vec(x, shape), Tensor::from(y))?)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    const TABLE: &[u8] = include_bytes!("../../data/digits.csv.gz");
    const PYTORCHS: &[u8] = include_bytes!("../pytorch.safetensors");

    fn table() -> String {
        let mut text = String::new();
        flate2::read::GzDecoder::new(TABLE).read_to_string(&mut text).unwrap();
        text
    }

    fn trained(seed: u64, steps: usize) -> (Trainer, Vec<f32>) {
        let mut trainer = Trainer::new(&table(), seed).unwrap();
        let losses = (0..steps).map(|_| trainer.step().unwrap()).collect();
        (trainer, losses)
    }

    #[test]
    fn the_loss_falls_and_the_network_reads_most_digits() {
        let (trainer, losses) = trained(0, 450);
        let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
        // Ten equal probabilities have the loss ln 10 = 2.30.
        assert!((losses[0] - 10f32.ln()).abs() < 0.5, "{}", losses[0]);
        assert!(mean(&losses[430..]) < 0.2, "{:?}", &losses[430..]);
        assert!(trainer.accuracy() > 0.9, "{}", trainer.accuracy());
        assert_eq!(trainer.epoch(), 450 / 1348_usize.div_ceil(BATCH) as u64);
    }

    #[test]
    fn an_epoch_is_complete_after_its_last_batch() {
        let batches = 1348_usize.div_ceil(BATCH);
        for (steps, complete) in [(0, 0), (batches - 1, 0), (batches, 1), (batches + 1, 1), (2 * batches, 2)] {
            assert_eq!(trained(0, steps).0.epoch(), complete, "{steps} steps");
        }
    }

    #[test]
    fn the_seed_determines_the_network() {
        let save = |seed| trained(seed, 50).0.save().unwrap();
        assert!(save(7) == save(7));
        assert!(save(7) != save(8));
    }

    #[test]
    fn the_network_of_pytorch_reads_the_digits_of_the_table() {
        let mut trainer = Trainer::new(&table(), 0).unwrap();
        assert!(trainer.accuracy() < 0.5);
        trainer.load(PYTORCHS).unwrap();
        assert!(trainer.accuracy() > 0.95, "{}", trainer.accuracy());
        let saved = trainer.save().unwrap();
        assert!(trainer.load(&saved[..100]).is_err());
        assert!(trainer.save().unwrap() == saved);
    }

    /// Returns an image of 280 x 280 pixels with a line through these points, as thick as the lines that the page draws. The coordinates are
    /// fractions of the image's side.
    fn drawn(points: &[(f32, f32)]) -> Vec<u8> {
        let is_near = |x: f32, y: f32| {
            points.windows(2).any(|ends| {
                let [(x0, y0), (x1, y1)] = [ends[0], ends[1]].map(|(x, y)| (280.0 * x, 280.0 * y));
                let (dx, dy) = (x1 - x0, y1 - y0);
                let along = (((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy)).clamp(0.0, 1.0);
                (x0 + along * dx - x).hypot(y0 + along * dy - y) <= 13.0
            })
        };
        let ink = |pixel: usize| if is_near((pixel % 280) as f32, (pixel / 280) as f32) { 255 } else { 0 };
        (0..280 * 280).map(ink).collect()
    }

    #[test]
    fn drawings_are_read() {
        let mut trainer = Trainer::new(&table(), 0).unwrap();
        trainer.load(PYTORCHS).unwrap();
        for (digit, points) in [
            (1, &[(0.5, 0.1), (0.5, 0.9)][..]),
            // The test in the browser draws this digit.
            (
                0,
                &[
                    (0.5, 0.1),
                    (0.3, 0.25),
                    (0.25, 0.5),
                    (0.3, 0.75),
                    (0.5, 0.9),
                    (0.7, 0.75),
                    (0.75, 0.5),
                    (0.7, 0.25),
                    (0.5, 0.1),
                ],
            ),
        ] {
            let guess = trainer.guess(&drawn(points));
            assert!((guess.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            assert!(guess[digit] > 0.5, "{digit}: {guess:?}");
        }
        assert!(trainer.guess(&[0; 4096]).is_empty());
    }

    #[test]
    fn a_table_with_another_line_is_an_error() {
        let line = vec!["0"; SQUARES + 1].join(",");
        assert!(Trainer::new(&[&*line; 4].join("\n"), 0).is_ok());
        for bad in ["", "1,2", "a", &line.replacen('0', "x", 1), &format!("{line},0"), &format!("{}10", &line[..128])] {
            let error = Trainer::new(&format!("{line}\n{bad}\n{line}"), 0).map(drop).unwrap_err();
            assert_eq!(error.to_string(), "line 2 is not 64 numbers and a digit", "{bad}");
        }
    }
}
