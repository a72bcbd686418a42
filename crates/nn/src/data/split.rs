//! Splits of a data set into samples for training and samples that are held out. A split lists the indices of samples, which
//! [`Dataset::subset`](crate::Dataset::subset) takes. scikit-learn: `sklearn.model_selection`.
//!
//! ```
//! # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
//! use wengert::nn::{Dataset, Generator, split};
//! use wengert::prelude::*;
//!
//! let data = Tensor::<f32>::randn([100, 8], &mut Generator::new(0));
//! for (train, test) in split::k_fold(Dataset::len(&data), 5, &mut Generator::new(1))? {
//!     let (train, test) = (data.subset(&train)?, data.subset(&test)?);
//!     assert_eq!((Dataset::len(&train), Dataset::len(&test)), (80, 20));
//! }
//! # Ok::<(), wengert_nn::Error>(())
//! ```

use wengert_tensor::{Generator, Tensor};

use crate::{Error, Result};

/// The indices of the samples for training, and the indices of the samples that are held out.
pub type Split = (Vec<usize>, Vec<usize>);

/// The size of the held-out part of a split. A share is an f64, and a count is an integer: `0.25` holds out a quarter of the samples, `300`
/// holds out 300 samples. scikit-learn: `test_size`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HeldOut {
    /// A share of the samples, from 0 to 1.
    ///
    /// The number of samples is ⌈n · share⌉ for n samples, with the product in f64, as in scikit-learn. A rounding error of the product can
    /// add a sample: 0.07 of 100 samples are 8 samples, because the product is 7.000000000000001.
    Share(f64),
    /// A number of samples.
    Count(i64),
}

impl From<f64> for HeldOut {
    fn from(share: f64) -> Self {
        HeldOut::Share(share)
    }
}

impl From<usize> for HeldOut {
    fn from(count: usize) -> Self {
        HeldOut::Count(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<i32> for HeldOut {
    fn from(count: i32) -> Self {
        HeldOut::Count(count.into())
    }
}

impl HeldOut {
    /// Returns the number of samples to hold out of `n` samples.
    ///
    /// # Errors
    ///
    /// If a share is not from 0 to 1, or a count is not from 0 to `n`. Also if a share is neither 0 nor 1, but no sample or every sample would be
    /// held out.
    fn count(self, n: usize) -> Result<usize> {
        let error = |problem| Err(Error::Dataset(problem));
        match self {
            HeldOut::Count(count) => match usize::try_from(count) {
                Ok(count) if count <= n => Ok(count),
                _ => error(format!("expected a number of samples from 0 to {n} to hold out, but got {count}")),
            },
            HeldOut::Share(share) if !(0.0..=1.0).contains(&share) => error(format!(
                "expected a share from 0 to 1 to hold out, or an integer for a number of samples, but got {share}"
            )),
            HeldOut::Share(share) => match (n as f64 * share).ceil() as usize {
                count if share > 0.0 && share < 1.0 && (count == 0 || count == n) => {
                    error(format!("too few samples: of {n} samples, a share of {share} or the rest would be empty"))
                }
                count => Ok(count),
            },
        }
    }

    /// Returns the exact number of samples to hold out of a class that has `members` of the `n` samples. It need not be an integer.
    fn quota(self, members: usize, n: usize) -> f64 {
        match self {
            HeldOut::Share(share) => members as f64 * share,
            HeldOut::Count(count) => members as f64 * count as f64 / n as f64,
        }
    }
}

/// Holds out the share or the number `held_out` of `n` samples, at random; see [`HeldOut`]. Both lists of indices are in random order. PyTorch:
/// `random_split`; scikit-learn: `ShuffleSplit`.
///
/// # Errors
///
/// If a share is not from 0 to 1, or a number of samples is not from 0 to `n`. Also if a share is neither 0 nor 1, but no sample or every sample
/// would be held out.
pub fn random(n: usize, held_out: impl Into<HeldOut>, generator: &mut Generator) -> Result<Split> {
    let count = held_out.into().count(n)?;
    let mut rest = generator.permutation(n);
    let held_out = rest.split_off(n - count);
    Ok((rest, held_out))
}

/// Holds out the share or the number `held_out` of the samples as [`random`] does, with the classes in nearly the same proportion among the held-out
/// and the other samples. Of each class, its share is held out, rounded down. The classes with the largest remainders contribute one more sample
/// until the number is complete. Both lists of indices ascend. scikit-learn: `StratifiedShuffleSplit`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{Generator, split};
/// use wengert::prelude::*;
///
/// let classes = Tensor::from([0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
/// let (train, test) = split::stratified(&classes, 0.25, &mut Generator::new(0))?;
/// let ones = |part: &[usize]| part.iter().filter(|&&index| index >= 8).count();
/// assert_eq!((train.len(), ones(&train), test.len(), ones(&test)), (9, 3, 3, 1));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// As for [`random`]. Also if a class has a single sample, because only one of the two lists could have this sample.
pub fn stratified(classes: &Tensor<i64>, held_out: impl Into<HeldOut>, generator: &mut Generator) -> Result<Split> {
    let (held_out, n) = (held_out.into(), classes.numel());
    let count = held_out.count(n)?;
    let mut members = shuffled_members(classes, 2, generator)?;
    let quota = |members: &[usize]| held_out.quota(members.len(), n);
    let mut counts: Vec<usize> = members.iter().map(|members| quota(members) as usize).collect();
    let mut by_remainder: Vec<usize> = (0..members.len()).collect();
    by_remainder.sort_by(|&a, &b| {
        let remainder = |class: usize| quota(&members[class]) - counts[class] as f64;
        remainder(b).total_cmp(&remainder(a))
    });
    let n_missing = count - counts.iter().sum::<usize>();
    for &class in by_remainder.iter().take(n_missing) {
        counts[class] += 1;
    }
    let mut held_out: Vec<usize> = Vec::with_capacity(count);
    for (members, count) in members.iter_mut().zip(counts) {
        held_out.extend(members.drain(..count));
    }
    let mut rest: Vec<usize> = members.into_iter().flatten().collect();
    rest.sort_unstable();
    held_out.sort_unstable();
    Ok((rest, held_out))
}

/// Returns `k` random splits of `n` samples, so that each sample is held out once. The numbers of held-out samples differ by at most one; the splits
/// with more held-out samples come first. The indices of each split are in ascending order. scikit-learn: `KFold(k, shuffle=True)`.
///
/// # Errors
///
/// If `k` is less than 2 or more than `n`.
pub fn k_fold(n: usize, k: usize, generator: &mut Generator) -> Result<Vec<Split>> {
    check_folds(n, k)?;
    let order = generator.permutation(n);
    let mut fold_of = vec![0; n];
    order.iter().enumerate().for_each(|(position, &sample)| fold_of[sample] = position % k);
    Ok(splits_of_folds(&fold_of, k))
}

/// Returns splits like [`k_fold`], with the classes in nearly the same proportion in each fold (the held-out part of a split). For each
/// class, the numbers of samples in the folds differ by at most one. scikit-learn: `StratifiedKFold(k, shuffle=True)`.
///
/// # Errors
///
/// If `k` is less than 2, there are no samples, or a class has fewer than `k` samples.
pub fn stratified_k_fold(classes: &Tensor<i64>, k: usize, generator: &mut Generator) -> Result<Vec<Split>> {
    check_folds(classes.numel(), k)?;
    // The first sample of each class goes to the fold after the fold of the last sample of the previous class. So the total sizes of the folds differ
    // by at most one too.
    let order = shuffled_members(classes, k, generator)?.into_iter().flatten();
    let mut fold_of = vec![0; classes.numel()];
    order.enumerate().for_each(|(position, sample)| fold_of[sample] = position % k);
    Ok(splits_of_folds(&fold_of, k))
}

/// Returns the indices of the samples of each class. The classes are in ascending order, and the samples of a class in random order.
/// Returns an error if a class has fewer than `min_members` samples.
fn shuffled_members(classes: &Tensor<i64>, min_members: usize, generator: &mut Generator) -> Result<Vec<Vec<usize>>> {
    let classes = classes.try_to_vec()?;
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_unstable_by_key(|&sample| (classes[sample], sample));
    let of_one_class = order.chunk_by(|&a, &b| classes[a] == classes[b]);
    let mut members: Vec<Vec<usize>> = of_one_class.map(<[usize]>::to_vec).collect();
    for members in &mut members {
        if members.len() < min_members {
            let (class, count) = (classes[members[0]], members.len());
            return Err(Error::Dataset(format!("class {class} has {count} samples, too few for {min_members} parts")));
        }
        generator.shuffle(members);
    }
    Ok(members)
}

/// Returns one split for each of the `k` folds. `fold_of` has, for each sample, the fold in which the sample is held out.
fn splits_of_folds(fold_of: &[usize], k: usize) -> Vec<Split> {
    (0..k).map(|fold| (0..fold_of.len()).partition(|&sample| fold_of[sample] != fold)).collect()
}

/// Returns an error unless the number of folds is from 2 to `n`.
fn check_folds(n: usize, k: usize) -> Result<()> {
    if (2..=n).contains(&k) {
        return Ok(());
    }
    Err(Error::Dataset(format!("k_fold: expected a number of folds from 2 to {n}, the number of samples, but got {k}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_held_out_once() {
        for (n, k) in [(10, 5), (11, 3), (4, 4)] {
            let splits = k_fold(n, k, &mut Generator::new(3)).unwrap();
            let mut held_out: Vec<usize> = Vec::new();
            for (train, test) in &splits {
                assert_eq!(train.len() + test.len(), n);
                assert!(train.iter().all(|sample| !test.contains(sample)) && train.is_sorted() && test.is_sorted());
                held_out.extend(test);
            }
            let sizes: Vec<usize> = splits.iter().map(|(_, test)| test.len()).collect();
            assert!(sizes.is_sorted_by(|a, b| a >= b) && sizes[0] - sizes[k - 1] <= 1, "{sizes:?}");
            held_out.sort_unstable();
            assert!(held_out.into_iter().eq(0..n));
        }
        let (first, again) = (k_fold(9, 3, &mut Generator::new(1)), k_fold(9, 3, &mut Generator::new(1)));
        assert_eq!(first.unwrap(), again.unwrap());
        assert_ne!(k_fold(9, 3, &mut Generator::new(1)).unwrap(), k_fold(9, 3, &mut Generator::new(2)).unwrap());
    }

    #[test]
    fn both_parts_have_the_classes_in_proportion() {
        // There are 10 samples of class 7, 5 of class -1 and 3 of class 0.
        let classes = Tensor::from_fn([18], |i| [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, -1, -1, -1, -1, -1, 0, 0, 0][i[0]]);
        let of =
            |held_out: &[usize], class: i64| held_out.iter().filter(|&&i| classes.get(&[i]) == Some(class)).count();
        // 18 · 0.3 = 5.4 is rounded up to 6. The shares of the classes are 3, 1.5 and 0.9 samples, rounded to 3, 2 and 1.
        let (train, test) = stratified(&classes, 0.3, &mut Generator::new(0)).unwrap();
        assert_eq!([of(&test, 7), of(&test, -1), of(&test, 0)], [3, 2, 1]);
        assert_eq!([of(&train, 7), of(&train, -1), of(&train, 0)], [7, 3, 2]);
        for (train, test) in stratified_k_fold(&classes, 3, &mut Generator::new(0)).unwrap() {
            assert_eq!((train.len(), test.len()), (12, 6));
            assert!((3..=4).contains(&of(&test, 7)) && (1..=2).contains(&of(&test, -1)) && of(&test, 0) == 1);
        }
        assert_eq!(stratified(&classes, 1.0, &mut Generator::new(0)).unwrap().1, Vec::from_iter(0..18));
        assert_eq!(stratified(&classes, 0.0, &mut Generator::new(0)).unwrap().0, Vec::from_iter(0..18));
    }

    /// The expected counts are `ceil(n * held_out)` in Python, as scikit-learn computes them.
    #[test]
    fn the_held_out_share_is_rounded_up_as_in_scikit_learn() {
        for (n, held_out, expected) in [(10, 0.25, 3), (100, 0.2, 20), (100, 0.07, 8), (100, 0.29, 29), (7, 1.0, 7)] {
            assert_eq!(random(n, held_out, &mut Generator::new(0)).unwrap().1.len(), expected, "{n} {held_out}");
        }
    }

    #[test]
    fn a_number_of_samples_is_held_out_exactly() {
        for count in [0, 1, 7, 100] {
            assert_eq!(random(100, count, &mut Generator::new(0)).unwrap().1.len(), count);
        }
        // Of 12 samples, 4 are held out. The exact shares are 2.67 of the 8 samples of class 0, and 1.33 of the 4 samples of class 1.
        let classes = Tensor::from([0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
        let (train, test) = stratified(&classes, 4, &mut Generator::new(0)).unwrap();
        let ones = |held_out: &[usize]| held_out.iter().filter(|&&i| i >= 8).count();
        assert_eq!((train.len(), ones(&train), test.len(), ones(&test)), (8, 3, 4, 1));
        assert_eq!(stratified(&classes, 12, &mut Generator::new(0)).unwrap().1, Vec::from_iter(0..12));
        assert_eq!(
            random(8, 2usize, &mut Generator::new(3)).unwrap(),
            random(8, 0.25, &mut Generator::new(3)).unwrap()
        );
    }

    #[test]
    fn impossible_splits_are_errors() {
        let generator = &mut Generator::new(0);
        for count in [-1, 11, i32::MAX] {
            let text = random(10, count, generator).unwrap_err().to_string();
            assert_eq!(text, format!("expected a number of samples from 0 to 10 to hold out, but got {count}"));
        }
        assert!(random(10, usize::MAX, generator).is_err());
        for share in [f64::NAN, -0.1, 1.1] {
            assert!(random(10, share, generator).is_err());
        }
        assert!(random(1, 0.5, generator).is_err());
        assert!(random(0, 0.5, generator).is_err());
        assert!(k_fold(3, 4, generator).is_err());
        assert!(k_fold(3, 1, generator).is_err());
        let single = Tensor::from([0, 0, 0, 1]);
        let text = stratified(&single, 0.5, generator).unwrap_err().to_string();
        assert_eq!(text, "class 1 has 1 samples, too few for 2 parts");
        assert!(stratified_k_fold(&Tensor::from([0, 0, 0, 1, 1]), 3, generator).is_err());
    }

    #[test]
    fn more_classes_than_memory_holds_are_an_error() {
        use wengert_tensor::ops::Views as _;
        let (classes, generator) = (Tensor::scalar(0i64).expand([1usize << 50]), &mut Generator::new(0));
        assert!(stratified(&classes, 0.5, generator).is_err());
        assert!(stratified_k_fold(&classes, 2, generator).is_err());
    }
}
