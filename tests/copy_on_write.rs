//! An in-place operation changes only the tensor that it is called on: no clone, no view, and no array with the same memory.
//!
//! The test clones, views and writes to a few tensors at random, and keeps a plain copy of the expected values of each.

use ndarray::{ArcArray, IxDyn};
use proptest::prelude::*;
use wengert::tensor::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Clone(usize),
    Transpose(usize),
    Flip(usize),
    Narrow(usize),
    Select(usize),
    Expand(usize),
    Window(usize),
    Array(usize),
    Add(usize, usize),
    Number(usize),
    Copy(usize, usize),
    Abs(usize),
    Drop(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = || 0usize..64;
    let step = prop_oneof![
        2 => at().prop_map(Step::Clone),
        1 => at().prop_map(Step::Transpose),
        1 => at().prop_map(Step::Flip),
        1 => at().prop_map(Step::Narrow),
        1 => at().prop_map(Step::Select),
        1 => at().prop_map(Step::Expand),
        1 => at().prop_map(Step::Window),
        1 => at().prop_map(Step::Array),
        3 => (at(), at()).prop_map(|(i, j)| Step::Add(i, j)),
        3 => at().prop_map(Step::Number),
        1 => (at(), at()).prop_map(|(i, j)| Step::Copy(i, j)),
        1 => at().prop_map(Step::Abs),
        2 => at().prop_map(Step::Drop),
    ];
    prop::collection::vec(step, 1..40)
}

/// A tensor and a copy of its expected values.
struct Held {
    tensor: Tensor<f64>,
    model: Tensor<f64>,
}

/// Returns a copy in its own buffer.
fn copied(x: &Tensor<f64>) -> Tensor<f64> {
    Tensor::from_vec(x.to_vec(), x.shape())
}

/// The tensors of a run, and the arrays that it exported with their expected values.
struct Run {
    held: Vec<Held>,
    arrays: Vec<(ArcArray<f64, IxDyn>, Vec<f64>)>,
}

impl Run {
    /// Returns the tensor with index `i` modulo their number, and a copy of its expected values.
    fn get(&self, i: usize) -> (Tensor<f64>, Tensor<f64>) {
        let Held { tensor, model } = &self.held[i % self.held.len()];
        (tensor.clone(), copied(model))
    }

    /// Adds a view of the tensor with index `i`, unless the view has more than 200 elements. Its expected values are the same view of the
    /// old expected values.
    fn add_view(&mut self, i: usize, view: &dyn Fn(&Tensor<f64>) -> Tensor<f64>) {
        let (tensor, model) = self.get(i);
        let viewed = view(&tensor);
        if viewed.numel() <= 200 {
            self.held.push(Held { model: copied(&view(&model)), tensor: viewed });
        }
    }

    /// Writes to the tensor with index `i`. If the write succeeds, `change` computes its new expected values.
    fn write(
        &mut self,
        i: usize,
        write: impl FnOnce(&mut Tensor<f64>) -> bool,
        change: impl FnOnce(&Tensor<f64>) -> Tensor<f64>,
    ) {
        let at = i % self.held.len();
        let Held { tensor, model } = &mut self.held[at];
        if write(tensor) {
            *model = change(model);
        }
    }

    fn step(&mut self, step: &Step) {
        let twice = |x: &Tensor<f64>| x.expand([&[2], x.shape().sizes()].concat().as_slice());
        match *step {
            Step::Clone(i) => self.add_view(i, &Tensor::clone),
            Step::Transpose(i) => self.add_view(i, &|x| x.try_transpose(0, 1).unwrap_or_else(|_| x.clone())),
            Step::Flip(i) => self.add_view(i, &|x| x.flip(-1)),
            Step::Narrow(i) => self.add_view(i, &|x| x.try_slice(0, (1.., 2)).unwrap_or_else(|_| x.clone())),
            Step::Select(i) => self.add_view(i, &|x| x.try_select(0, -1).unwrap_or_else(|_| x.clone())),
            Step::Expand(i) => self.add_view(i, &twice),
            Step::Window(i) => self.add_view(i, &|x| x.try_unfold(0, 2, 1).unwrap_or_else(|_| x.clone())),
            Step::Array(i) => {
                // Converts the tensor to a shared array and back.
                let (tensor, model) = self.get(i);
                let array = tensor.into_ndarray().into_shared();
                self.arrays.push((array.clone(), model.to_vec()));
                self.held.push(Held { tensor: Tensor::from(array), model });
            }
            Step::Add(i, j) => {
                let (other, values) = self.get(j);
                self.write(i, |x| x.try_add_(&other).is_ok(), |model| model + &values);
            }
            Step::Number(i) => self.write(i, |x| x.try_mul_(-0.5).is_ok(), |model| model * -0.5),
            Step::Copy(i, j) => {
                let (other, values) = self.get(j);
                self.write(i, |x| x.try_copy_(&other).is_ok(), |model| copied(&values.expand(model.shape())));
            }
            Step::Abs(i) => self.write(i, |x| x.try_abs_().is_ok(), |model| model.abs()),
            Step::Drop(i) if self.held.len() > 2 => drop(self.held.swap_remove(i % self.held.len())),
            Step::Drop(_) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn writing_changes_one_tensor(steps in steps()) {
        let start = Tensor::from_fn([3, 4], |index| (10 * index[0] + index[1]) as f64 - 12.0);
        let array = ArcArray::from_shape_fn(IxDyn(&[3, 4]), |index| (index[0] + 3 * index[1]) as f64);
        let original = array.to_owned();
        let held = vec![
            Held { model: copied(&start), tensor: start },
            Held { model: Tensor::from(original.view()), tensor: Tensor::from(array.clone()) },
        ];
        let mut run = Run { held, arrays: Vec::new() };
        for step in &steps {
            run.step(step);
            for Held { tensor, model } in &run.held {
                prop_assert_eq!(tensor, model);
            }
            for (array, model) in &run.arrays {
                prop_assert!(array.iter().eq(model), "an exported array changed");
            }
            prop_assert_eq!(&array, &original);
        }
    }
}

#[test]
fn the_only_holder_writes_in_place() {
    let mut x = Tensor::<f64>::zeros([4]);
    let place = x.as_slice().map(<[f64]>::as_ptr);
    x.add_(1.0);
    assert_eq!(x.as_slice().map(<[f64]>::as_ptr), place);
    let held = x.clone();
    x.add_(1.0);
    assert_ne!(x.as_slice().map(<[f64]>::as_ptr), place);
    assert_eq!((x.to_vec(), held.to_vec()), (vec![2.0; 4], vec![1.0; 4]));
}

#[test]
fn overlapping_windows_are_values_too() {
    // Each element of the windows is written once, even if windows overlap in the buffer.
    let windows = || Tensor::from([1.0, 2.0, 3.0, 4.0]).unfold(0, 2, 1);
    let (mut alone, mut shared) = (windows(), windows());
    let held = shared.clone();
    alone.mul_(10.0);
    shared.mul_(10.0);
    let expected = Tensor::from([[10.0, 20.0], [20.0, 30.0], [30.0, 40.0]]);
    assert_eq!((alone, shared), (expected.clone(), expected));
    assert_eq!(held, windows());
}
