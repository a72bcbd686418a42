//! Values are values: an operation in place changes the tensor it is called on, and no other: no clone, no view, no
//! array that shares its memory.
//!
//! A few tensors are cloned, viewed and written to at random; beside each lies a plain copy of what it should hold.

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

/// A tensor and what it should hold.
struct Held {
    tensor: Tensor<f64>,
    model: Tensor<f64>,
}

/// Memory that nothing else knows.
fn apart(x: &Tensor<f64>) -> Tensor<f64> {
    Tensor::from_vec(x.to_vec(), x.shape())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn writing_changes_one_tensor(steps in steps()) {
        let start = Tensor::from_fn([3, 4], |index| (10 * index[0] + index[1]) as f64 - 12.0);
        let array = ArcArray::from_shape_fn(IxDyn(&[3, 4]), |index| (index[0] + 3 * index[1]) as f64);
        let arrived = array.to_owned();
        let mut arrays: Vec<(ArcArray<f64, IxDyn>, Vec<f64>)> = Vec::new();
        let mut held = vec![
            Held { model: apart(&start), tensor: start },
            Held { model: Tensor::from(arrived.view()), tensor: Tensor::from(array.clone()) },
        ];
        for step in steps {
            let count = held.len();
            let of = |i: usize, held: &[Held]| (held[i % count].tensor.clone(), apart(&held[i % count].model));
            // New tensors are views of an old one; their models are views of its model.
            let mut viewed = |i: usize, view: &dyn Fn(&Tensor<f64>) -> Tensor<f64>| {
                let (tensor, model) = of(i, &held);
                let seen = view(&tensor);
                if seen.numel() <= 200 {
                    held.push(Held { model: apart(&view(&model)), tensor: seen });
                }
            };
            let twice = |x: &Tensor<f64>| x.expand([&[2], x.shape().sizes()].concat().as_slice());
            match step {
                Step::Clone(i) => viewed(i, &Tensor::clone),
                Step::Transpose(i) => viewed(i, &|x| x.try_transpose(0, 1).unwrap_or_else(|_| x.clone())),
                Step::Flip(i) => viewed(i, &|x| x.flip(-1)),
                Step::Narrow(i) => viewed(i, &|x| x.try_slice(0, Some(1), None, 2).unwrap_or_else(|_| x.clone())),
                Step::Select(i) => viewed(i, &|x| x.try_select(0, -1).unwrap_or_else(|_| x.clone())),
                Step::Expand(i) => viewed(i, &twice),
                Step::Window(i) => viewed(i, &|x| x.try_unfold(0, 2, 1).unwrap_or_else(|_| x.clone())),
                Step::Array(i) => {
                    // Out as an array that others share, and in again.
                    let (tensor, model) = of(i, &held);
                    let array = tensor.into_ndarray().into_shared();
                    arrays.push((array.clone(), model.to_vec()));
                    held.push(Held { tensor: Tensor::from(array), model });
                }
                Step::Add(i, j) => {
                    let (other, other_model) = of(j, &held);
                    let Held { tensor, model } = &mut held[i % count];
                    if tensor.try_add_(&other).is_ok() {
                        *model = &*model + &other_model;
                    }
                }
                Step::Number(i) => {
                    let Held { tensor, model } = &mut held[i % count];
                    if tensor.try_mul_(-0.5).is_ok() {
                        *model = &*model * -0.5;
                    }
                }
                Step::Copy(i, j) => {
                    let (other, other_model) = of(j, &held);
                    let Held { tensor, model } = &mut held[i % count];
                    if tensor.try_copy_(&other).is_ok() {
                        *model = apart(&other_model.expand(model.shape()));
                    }
                }
                Step::Abs(i) => {
                    let Held { tensor, model } = &mut held[i % count];
                    if tensor.try_abs_().is_ok() {
                        *model = model.abs();
                    }
                }
                Step::Drop(i) if count > 2 => drop(held.swap_remove(i % count)),
                Step::Drop(_) => {}
            }
            for Held { tensor, model } in &held {
                prop_assert_eq!(tensor, model);
            }
            for (array, model) in &arrays {
                prop_assert!(array.iter().eq(model), "an array that was given away");
            }
            prop_assert_eq!(&array, &arrived);
        }
    }
}

#[test]
fn the_only_holder_writes_where_it_is() {
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
    // Whether or not somebody holds the buffer, each element of the window is written once.
    let windows = || Tensor::from([1.0, 2.0, 3.0, 4.0]).unfold(0, 2, 1);
    let (mut alone, mut shared) = (windows(), windows());
    let held = shared.clone();
    alone.mul_(10.0);
    shared.mul_(10.0);
    let expected = Tensor::from([[10.0, 20.0], [20.0, 30.0], [30.0, 40.0]]);
    assert_eq!((alone, shared), (expected.clone(), expected));
    assert_eq!(held, windows());
}
