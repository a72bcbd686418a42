//! Loads the batches of a data set, for one epoch at a time.
//!
//! All random choices are functions of the seed, the index of the epoch and the index of the batch. So any batch can be made without the
//! batches before it, on any thread.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use wengert_macros::twins;
use wengert_tensor::{Generator, Tensor};

use crate::data::batches::Batches;
use crate::data::dataset::Dataset;
use crate::{Error, Result};

/// A function that returns the samples with the given indices as a batch. It draws random numbers for augmentation from the generator.
type Fetch<B> = dyn Fn(&[usize], &mut Generator) -> Result<B> + Send + Sync;

/// A loader of the batches of a data set. The seed and the index of the epoch determine the order of the samples. PyTorch:
/// `torch.utils.data.DataLoader`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{DataLoader, Samples};
/// use wengert::prelude::*;
///
/// let data = Samples::new(Tensor::<f32>::zeros([75, 64]), Tensor::<i64>::zeros([75]))?;
/// let loader = DataLoader::new(data, 32).shuffle().seed(7).prefetch(2);
/// for epoch in 0..3 {
///     for batch in loader.epoch(epoch) {
///         let (inputs, targets) = batch?;
///         assert_eq!(inputs.shape()[0], targets.shape()[0]);
///     }
/// }
/// assert_eq!(loader.len(), 3); // of 32, 32 and 11 samples
/// # Ok::<(), wengert_nn::Error>(())
/// ```
pub struct DataLoader<B = (Tensor<f32>, Tensor<i64>)> {
    fetch: Arc<Fetch<B>>,
    /// The number of samples in the data set.
    dataset_len: usize,
    /// The number of samples in an epoch, with the samples of a smaller last batch that `drop_last` leaves out.
    samples: usize,
    batch_size: usize,
    shuffle: bool,
    /// For each sample, the sum of the weights up to and including its own weight. `None` if samples are not drawn by weights.
    cumulative_weights: Option<Arc<[f64]>>,
    drop_last: bool,
    seed: u64,
    prefetch: usize,
    workers: usize,
}

impl<B: Send + 'static> DataLoader<B> {
    /// Returns a loader with batches of `batch_size` samples, in the order of the data set. The last batch may be smaller.
    ///
    /// # Panics
    ///
    /// If `batch_size` is 0.
    #[track_caller]
    pub fn new(dataset: impl Dataset<Batch = B>, batch_size: usize) -> Self {
        assert!(batch_size > 0, "batch_size should be a positive integer value, but got batch_size={batch_size}");
        let samples = dataset.len();
        let fetch = Arc::new(move |indices: &[usize], _: &mut Generator| dataset.batch(indices));
        DataLoader {
            fetch,
            dataset_len: samples,
            samples,
            batch_size,
            shuffle: false,
            cumulative_weights: None,
            drop_last: false,
            seed: 0,
            prefetch: 0,
            workers: 1,
        }
    }

    /// Shuffles the samples. The order is different in each epoch. Undoes [`weighted`](Self::weighted) and its number of samples: an epoch
    /// then has each sample of the data set once.
    #[must_use]
    pub fn shuffle(self) -> Self {
        let samples = if self.cumulative_weights.is_some() { self.dataset_len } else { self.samples };
        DataLoader { shuffle: true, cumulative_weights: None, samples, ..self }
    }

    /// Sets the seed of all random choices; 0 by default. PyTorch: `generator`.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        DataLoader { seed, ..self }
    }

    /// Leaves out the last batch if it would be smaller than the other batches.
    #[must_use]
    pub fn drop_last(self) -> Self {
        DataLoader { drop_last: true, ..self }
    }

    /// Limits an epoch to `samples` samples of the data set. With [`shuffle`](Self::shuffle) each epoch has different samples. Otherwise
    /// each epoch has the first samples. After [`weighted`](Self::weighted), an epoch draws at most `samples` samples. For more samples than
    /// the data set has, see [`weighted`](Self::weighted). PyTorch: `num_samples` of `RandomSampler`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::{DataLoader, next_tokens};
    /// use wengert::prelude::*;
    ///
    /// // A text has almost as many pieces as characters, so that an epoch of all pieces would be long.
    /// let pieces = next_tokens(&Tensor::arange(100_000), 64)?;
    /// let loader = DataLoader::new(pieces, 16).shuffle().limit(1600);
    /// assert_eq!((loader.samples(), loader.len()), (1600, 100));
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    #[must_use]
    pub fn limit(self, samples: usize) -> Self {
        let most = if self.cumulative_weights.is_some() { self.samples } else { self.dataset_len };
        DataLoader { samples: samples.min(most), ..self }
    }

    /// Makes up to `batches` batches in advance on another thread, or on several threads with
    /// [`workers`](Self::workers). The default 0 means no thread. If the system cannot start a thread, as in
    /// WebAssembly, each batch is made when it is requested. The batches do not depend on this setting. PyTorch:
    /// `prefetch_factor`.
    #[must_use]
    pub fn prefetch(self, batches: usize) -> Self {
        DataLoader { prefetch: batches, ..self }
    }

    /// Makes batches in advance on `threads` threads instead of one, at least one batch per thread. The number that
    /// [`prefetch`](Self::prefetch) sets is rounded up to a multiple of `threads`. The batches and their order do not depend on this
    /// setting. It helps if a batch takes longer to make than a training step, as with large images. PyTorch: `num_workers`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::DataLoader;
    /// use wengert::prelude::*;
    ///
    /// let loader = DataLoader::new(Tensor::<i64>::arange(10), 2).shuffle();
    /// let batches: Vec<_> = loader.epoch(0).collect::<Result<_, _>>()?;
    /// assert_eq!(loader.workers(4).epoch(0).collect::<Result<Vec<_>, _>>()?, batches);
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    #[must_use]
    pub fn workers(self, threads: usize) -> Self {
        DataLoader { workers: threads, prefetch: self.prefetch.max(threads), ..self }
    }

    /// Applies `transform` to each batch, for example for augmentation, scaling or a conversion. `transform` gets a generator that depends only
    /// on the seed, the epoch and the batch. PyTorch: `transform`, which changes one sample.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::{DataLoader, Samples, augment};
    /// use wengert::prelude::*;
    ///
    /// let data = Samples::new(Tensor::<f32>::zeros([10, 1, 8, 8]), Tensor::<i64>::zeros([10]))?;
    /// let loader = DataLoader::new(data, 5).shuffle().map(|(images, classes), generator| {
    ///     Ok((augment::random_shift(&images, 1, generator)?, classes))
    /// });
    /// assert_eq!(loader.epoch(0).next().unwrap()?.0.shape(), &[5, 1, 8, 8]);
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    #[must_use]
    pub fn map<C: Send + 'static>(
        self,
        transform: impl Fn(B, &mut Generator) -> Result<C> + Send + Sync + 'static,
    ) -> DataLoader<C> {
        let fetch = self.fetch;
        DataLoader {
            fetch: Arc::new(move |indices: &[usize], generator: &mut Generator| {
                transform(fetch(indices, generator)?, generator)
            }),
            dataset_len: self.dataset_len,
            samples: self.samples,
            batch_size: self.batch_size,
            shuffle: self.shuffle,
            cumulative_weights: self.cumulative_weights,
            drop_last: self.drop_last,
            seed: self.seed,
            prefetch: self.prefetch,
            workers: self.workers,
        }
    }

    /// Returns the batches of the epoch with index `epoch`.
    pub fn epoch(&self, epoch: u64) -> Batches<B> {
        // Each epoch has its own generator. Its first word is the seed of the order of the samples, and the next words are the seeds of the
        // batches.
        let mut epoch_generator = Generator::from_state(self.seed, epoch).fork();
        let mut order = match &self.cumulative_weights {
            Some(sums) => draw_weighted(sums, self.samples, &mut epoch_generator.fork()),
            None if self.shuffle => epoch_generator.fork().permutation(self.dataset_len),
            None => (0..self.samples).collect(),
        };
        order.truncate(self.samples);
        let (fetch, size) = (Arc::clone(&self.fetch), self.batch_size);
        let make_batch = Arc::new(move |number: usize| {
            let end = order.len().min((number + 1) * size);
            let mut generator = Generator::from_state(epoch_generator.seed(), 1 + number as u64).fork();
            fetch(&order[number * size..end], &mut generator)
        });
        let prefetchers = VecDeque::new();
        Batches {
            make_batch,
            next: 0,
            n_batches: self.len(),
            prefetch: self.prefetch,
            workers: self.workers,
            prefetchers,
        }
    }

    /// Returns the number of batches in an epoch.
    pub fn len(&self) -> usize {
        if self.drop_last { self.samples / self.batch_size } else { self.samples.div_ceil(self.batch_size) }
    }

    /// Returns true if an epoch has no batches.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of samples in an epoch. The samples of a last batch that [`drop_last`](Self::drop_last) leaves out are counted too.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Returns the number of samples in the batch with index `batch`; 0 if an epoch has no batch with this index.
    pub fn batch_len(&self, batch: usize) -> usize {
        if batch < self.len() { self.batch_size.min(self.samples - batch * self.batch_size) } else { 0 }
    }
}

#[twins]
impl<B: Send + 'static> DataLoader<B> {
    /// Draws `samples` samples at random for each epoch, each with a probability in proportion to its weight. A sample may be drawn several
    /// times or never. Replaces [`shuffle`](Self::shuffle). PyTorch: `WeightedRandomSampler(weights, samples, replacement=True)`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::{DataLoader, Samples};
    /// use wengert::prelude::*;
    ///
    /// // One sample of class 1 among nine of class 0. By these weights, both classes are drawn equally often.
    /// let classes = Tensor::from_fn([10], |at| i64::from(at[0] == 0));
    /// let weights: Vec<f64> = classes.iter().map(|class| if class == 1 { 1.0 } else { 1.0 / 9.0 }).collect();
    /// let data = Samples::new(Tensor::<f32>::zeros([10, 2]), classes)?;
    /// let loader = DataLoader::new(data, 100).weighted(weights, 1000);
    /// let ones: usize = loader.epoch(0).map(|batch| batch.unwrap().1.iter().filter(|&class| class == 1).count()).sum();
    /// assert!((400..600).contains(&ones));
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - The number of weights is not the number of samples.
    /// - A weight is negative, infinite or NaN, or the sum of the weights is 0 or infinite.
    pub fn try_weighted(self, weights: impl Into<Vec<f64>>, samples: usize) -> Result<Self> {
        let (mut sums, dataset_len) = (weights.into(), self.dataset_len);
        let error = |problem: String| Err(Error::Dataset(format!("weighted: {problem}")));
        if sums.len() != dataset_len {
            return error(format!("expected a weight for each of the {dataset_len} samples, but got {}", sums.len()));
        }
        if let Some((sample, weight)) = sums.iter().enumerate().find(|(_, weight)| !(0.0..=f64::MAX).contains(*weight))
        {
            return error(format!(
                "expected weights that are finite and not negative, but got {weight} for sample {sample}"
            ));
        }
        let mut sum = 0.0;
        for weight in &mut sums {
            sum += *weight;
            *weight = sum;
        }
        if !(sum > 0.0 && sum.is_finite()) {
            return error(format!("expected a positive and finite sum of the weights, but got {sum}"));
        }
        Ok(DataLoader { cumulative_weights: Some(sums.into()), samples, shuffle: false, ..self })
    }
}

/// Draws `count` positions, each with a probability in proportion to its weight. `sums` has, for each position, the sum of the weights up
/// to and including it.
fn draw_weighted(sums: &[f64], count: usize, generator: &mut Generator) -> Vec<usize> {
    let total = sums.last().copied().unwrap_or_default();
    let mut draw = || {
        let threshold = generator.uniform() * total;
        // The first position whose sum is above `threshold` has a positive weight. Rounding may make `threshold` equal to the total: then the last
        // position with a positive weight is the first whose sum is the total.
        let position = sums.partition_point(|&sum| sum <= threshold);
        if position < sums.len() { position } else { sums.partition_point(|&sum| sum < total) }
    };
    (0..count).map(|_| draw()).collect()
}

/// Copies the settings. The copy shares the data set.
impl<B> Clone for DataLoader<B> {
    fn clone(&self) -> Self {
        DataLoader { fetch: Arc::clone(&self.fetch), cumulative_weights: self.cumulative_weights.clone(), ..*self }
    }
}

impl<B> fmt::Debug for DataLoader<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DataLoader {
            fetch: _,
            dataset_len: _,
            samples,
            batch_size,
            shuffle,
            cumulative_weights,
            drop_last,
            seed,
            prefetch,
            workers,
        } = self;
        let mut text = f.debug_struct("DataLoader");
        text.field("samples", samples).field("batch_size", batch_size).field("shuffle", shuffle);
        text.field("weighted", &cumulative_weights.is_some());
        text.field("drop_last", drop_last).field("seed", seed);
        text.field("prefetch", prefetch).field("workers", workers).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::Samples;

    /// Returns `n` samples; sample i is [2i, 2i + 1] with the class i.
    fn numbered(n: usize) -> Samples<Tensor<f64>> {
        use wengert_tensor::ops::Views;
        Samples::new(Tensor::arange(2 * n).reshape([n, 2]), Tensor::arange(n)).unwrap()
    }

    fn classes(batches: Batches<(Tensor<f64>, Tensor<i64>)>) -> Vec<Vec<i64>> {
        batches.map(|batch| batch.unwrap().1.to_vec()).collect()
    }

    #[test]
    fn batches_are_views_in_order_and_the_last_is_shorter() {
        let data = numbered(5);
        let batches = DataLoader::new(data.clone(), 2).epoch(0);
        assert_eq!(batches.len(), 3);
        let batches: Vec<_> = batches.collect::<Result<_>>().unwrap();
        assert!(batches.iter().all(|(x, _)| x.shares_storage(data.inputs())));
        assert_eq!(batches[1], (Tensor::from([[4.0, 5.0], [6.0, 7.0]]), Tensor::from([2, 3])));
        assert_eq!(batches[2], (Tensor::from([[8.0, 9.0]]), Tensor::from([4])));
        assert_eq!(DataLoader::new(numbered(0), 2).epoch(0).count(), 0);
        let whole = DataLoader::new(numbered(5), 2).drop_last();
        assert_eq!((whole.len(), classes(whole.epoch(0))), (2, vec![vec![0, 1], vec![2, 3]]));
        assert_eq!(DataLoader::new(numbered(1), 2).drop_last().epoch(0).count(), 0);
    }

    #[test]
    fn the_seed_determines_another_order_for_each_epoch() {
        let loader = DataLoader::new(numbered(50), 8).shuffle().seed(1);
        let (first, second) = (classes(loader.epoch(0)), classes(loader.epoch(1)));
        assert_ne!(first, second);
        assert_ne!(first, classes(loader.clone().seed(2).epoch(0)));
        assert_eq!(classes(loader.epoch(1)), second);
        let mut all = second.concat();
        assert_ne!(all, Vec::from_iter(0..50));
        all.sort_unstable();
        assert_eq!(all, Vec::from_iter(0..50));
        let (x, class) = loader.epoch(0).next().unwrap().unwrap();
        assert_eq!(x.iter().next(), Some(2.0 * class.iter().next().unwrap() as f64));
    }

    #[test]
    fn an_epoch_may_be_limited_to_a_part_of_the_data() {
        let loader = DataLoader::new(numbered(50), 8).limit(20);
        assert_eq!((loader.samples(), loader.len(), loader.batch_len(2)), (20, 3, 4));
        assert_eq!(classes(loader.epoch(0)).concat(), Vec::from_iter(0..20));
        let loader = loader.shuffle().map(|batch, _| Ok(batch));
        let [first, second] = [0, 1].map(|epoch| classes(loader.epoch(epoch)).concat());
        assert_eq!((first.len(), second.len()), (20, 20));
        assert!(first.iter().any(|class| *class >= 20) && first != second);
        let all = DataLoader::new(numbered(50), 8).shuffle();
        assert_eq!(first, classes(all.epoch(0)).concat()[..20]);
        assert_eq!(all.limit(99).samples(), 50);
    }

    #[test]
    fn samples_are_drawn_in_proportion_to_their_weights() {
        let loader = DataLoader::new(numbered(4), 7).weighted([1.0, 0.0, 2.0, 5.0], 8000).seed(3);
        assert_eq!((loader.samples(), loader.len()), (8000, 1143));
        let all = classes(loader.epoch(0)).concat();
        let counts = [0, 1, 2, 3].map(|class| all.iter().filter(|&&found| found == class).count());
        assert_eq!((counts.iter().sum::<usize>(), counts[1]), (8000, 0));
        // The bounds are five standard deviations of a count. For a class of probability p, the standard deviation is √(8000 p (1 - p)) ≤
        // 44 samples.
        let expected: [usize; 4] = [1000, 0, 2000, 5000];
        assert!(counts.iter().zip(expected).all(|(&count, expected)| count.abs_diff(expected) < 220), "{counts:?}");
        assert_ne!(all, classes(loader.epoch(1)).concat());
        assert_eq!(all, classes(loader.clone().prefetch(2).epoch(0)).concat());
        assert_eq!(draw_weighted(&[0.0, 1.0, 1.0], 5, &mut Generator::new(0)), [1; 5]);
    }

    #[test]
    fn shuffling_and_limits_after_weights_keep_the_epoch_consistent() {
        for count in [3, 1000] {
            let loader = DataLoader::new(numbered(10), 4).weighted([1.0; 10], count).shuffle();
            let mut all = classes(loader.epoch(0)).concat();
            all.sort_unstable();
            assert_eq!((loader.samples(), all), (10, Vec::from_iter(0..10)), "{count}");
        }
        let limited = DataLoader::new(numbered(10), 4).weighted([1.0; 10], 1000).limit(500);
        assert_eq!((limited.samples(), classes(limited.epoch(0)).concat().len()), (500, 500));
        assert_eq!(limited.limit(900).samples(), 500);
        assert_eq!(DataLoader::new(numbered(10), 4).limit(5).shuffle().samples(), 5);
    }

    #[test]
    fn weights_that_are_no_weights_are_errors() {
        let refused =
            |weights: &[f64]| DataLoader::new(numbered(2), 2).try_weighted(weights, 9).unwrap_err().to_string();
        assert_eq!(refused(&[1.0]), "weighted: expected a weight for each of the 2 samples, but got 1");
        for (weights, problem) in [
            ([1.0, -0.5], "but got -0.5 for sample 1"),
            ([f64::NAN, 1.0], "but got NaN for sample 0"),
            ([1.0, f64::INFINITY], "but got inf for sample 1"),
            ([0.0, 0.0], "sum of the weights, but got 0"),
            ([f64::MAX, f64::MAX], "sum of the weights, but got inf"),
        ] {
            assert!(refused(&weights).contains(problem), "{}", refused(&weights));
        }
    }

    /// Checks that the random numbers of a batch depend neither on earlier batches nor on the number of batches made in advance.
    #[test]
    fn any_batch_can_be_made_alone_and_in_advance() {
        let loader = DataLoader::new(numbered(20), 3).shuffle().seed(5);
        let loader = loader.map(|(_, class), generator| Ok((class, generator.next_u64())));
        let all: Vec<_> = loader.epoch(2).map(Result::unwrap).collect();
        let words: std::collections::HashSet<u64> = all.iter().map(|(_, word)| *word).collect();
        assert_eq!(words.len(), 7);
        for (prefetch, workers) in [(1, 1), (2, 1), (100, 1), (0, 2), (5, 3), (0, 100)] {
            let ahead = loader.clone().prefetch(prefetch).workers(workers);
            assert_eq!(ahead.epoch(2).map(Result::unwrap).collect::<Vec<_>>(), all);
            for start in 0..=8 {
                let batches = ahead.epoch(2).starting_at(start);
                assert_eq!((batches.len(), batches.number()), (7usize.saturating_sub(start), start.min(7)));
                assert_eq!(batches.map(Result::unwrap).collect::<Vec<_>>(), all[start.min(7)..]);
            }
        }
        // The iterator is dropped after its first batch, although its thread makes further batches.
        assert_eq!(loader.prefetch(2).epoch(2).next().unwrap().unwrap(), all[0]);
    }

    #[test]
    fn errors_and_panics_of_the_thread_reach_the_caller() {
        let failing = |(_, class): (Tensor<f64>, Tensor<i64>), _: &mut Generator| match class.get(&[0]) {
            Some(2) => Err(Error::Dataset("no".to_owned())),
            _ => Ok(class),
        };
        let panics = DataLoader::new(numbered(6), 2).map(|_, _| -> Result<()> { panic!("of the thread") });
        for workers in [1, 2] {
            let loader = DataLoader::new(numbered(6), 2).map(failing).workers(workers);
            let results: Vec<bool> = loader.epoch(0).map(|batch| batch.is_ok()).collect();
            assert_eq!(results, [true, false, true]);
            let panics = panics.clone().workers(workers);
            let panic = catch_unwind(AssertUnwindSafe(|| panics.epoch(0).count())).unwrap_err();
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"of the thread"));
        }
    }

    /// The batches after a panic do not depend on the number of threads. In an earlier version, two threads gave the batches in another
    /// order and left some out. With one thread, every call panicked.
    #[test]
    fn an_epoch_goes_on_after_a_panic() {
        let loader = DataLoader::new(numbered(14), 2).map(|(_, class), _| match class.get(&[0]) {
            Some(4 | 6) => panic!("of the thread"),
            _ => Ok(class.to_vec()[0]),
        });
        for (prefetch, workers) in [(0, 0), (1, 1), (4, 1), (2, 2), (6, 3), (7, 7)] {
            let mut epoch = loader.clone().workers(workers).prefetch(prefetch).epoch(0);
            let mut next = || {
                let batch = catch_unwind(AssertUnwindSafe(|| epoch.next()));
                (batch.map(|batch| batch.map(Result::unwrap)).ok(), epoch.number(), epoch.len())
            };
            let got: Vec<_> = (0..8).map(|_| next()).collect();
            let first = [Some(0), Some(2), None, None, Some(8), Some(10), Some(12)];
            let expected = first.into_iter().enumerate().map(|(i, class)| (class.map(Some), i + 1, 6 - i));
            assert_eq!(got, expected.chain([(Some(None), 7, 0)]).collect::<Vec<_>>(), "{prefetch} {workers}");
        }
    }

    #[test]
    #[should_panic(expected = "batch_size should be a positive integer value, but got batch_size=0")]
    fn batches_of_nothing_are_refused() {
        DataLoader::new(numbered(1), 0);
    }

    #[test]
    fn more_batches_in_advance_than_the_epoch_has_need_no_memory() {
        let loader = DataLoader::new(numbered(10), 4).prefetch(1 << 40);
        assert_eq!(classes(loader.epoch(0)).concat(), Vec::from_iter(0..10));
    }

    #[test]
    fn a_batch_that_is_not_in_the_epoch_has_no_samples() {
        let lengths = |loader: &DataLoader<_>| [0, 1, 2, 3, usize::MAX].map(|batch| loader.batch_len(batch));
        let loader = DataLoader::new(numbered(5), 2);
        assert_eq!(lengths(&loader), [2, 2, 1, 0, 0]);
        assert_eq!(lengths(&loader.drop_last()), [2, 2, 0, 0, 0]);
        assert_eq!(lengths(&DataLoader::new(numbered(5), usize::MAX)), [5, 0, 0, 0, 0]);
    }
}
