//! Gradients that are recorded first and computed later. Each gradient is passed to a sink as soon as it is computed.

use std::cell::RefCell;

use wengert_macros::{precompiled, twins};
use wengert_tensor::ops::Evaluate;
use wengert_tensor::plan::{NodeIndex, plan_for};
use wengert_tensor::{Float, Site, Tensor};

use super::gradients::Gradients;
use super::reverse::{fill_in_values, statistic_nodes};
use crate::evaluate::{RemoteParameters, TapePart};
use crate::parameter::BufferChange;
use crate::{Error, Var};

/// A receiver of the gradients of [`RecordedGradients`], which gets each gradient as soon as it is computed. It may also supply the values
/// of parameters that are not in the model's memory.
pub trait GradientSink<T: Float = f32> {
    /// Receives the gradient of the parameter with the [`id`](crate::Parameter::id) `parameter`.
    ///
    /// # Errors
    ///
    /// An error ends the evaluation.
    fn gradient(&mut self, parameter: u64, gradient: Tensor<T>) -> Result<(), Error>;

    /// Returns true if the values of the parameter with the id `parameter` are not in the model's memory, so that [`fetch`](Self::fetch)
    /// supplies them.
    fn is_remote(&self, _parameter: u64) -> bool {
        false
    }

    /// Returns the values of a parameter that are [not in the model's memory](Self::is_remote). Each step of the evaluation that reads
    /// the parameter calls this method again. The default implementation panics.
    ///
    /// # Errors
    ///
    /// An error ends the evaluation.
    fn fetch(&mut self, parameter: u64) -> Result<Tensor<T>, Error> {
        unreachable!("the parameter with the number {parameter} is in the model's memory")
    }
}

/// The gradients of a loss with respect to all parameters that it depends on, recorded and not yet computed.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::autograd::{Error, GradientSink};
///
/// /// The order in which gradients are complete.
/// struct Order(Vec<u64>);
///
/// impl GradientSink for Order {
///     fn gradient(&mut self, parameter: u64, _gradient: Tensor) -> Result<(), Error> {
///         self.0.push(parameter);
///         Ok(())
///     }
/// }
///
/// let (v, w) = (Parameter::new(Tensor::ones([8, 8])), Parameter::new(Tensor::ones([8, 8])));
/// let tape = Tape::new();
/// let x = tape.constant(&Tensor::ones([4, 8]));
/// let loss = x.matmul(&tape.parameter(&v)).tanh().matmul(&tape.parameter(&w)).sum(..);
/// let recorded = loss.record_backward();
/// let mut order = Order(Vec::new());
/// recorded.evaluate(&mut order);
/// // The gradient of the last layer comes first.
/// assert_eq!(order.0, [w.id(), v.id()]);
/// ```
#[derive(Clone, Debug)]
pub struct RecordedGradients<'t, T: Float = f32> {
    loss: Var<'t, T>,
    /// Each parameter's id, and the node of its gradient.
    parameters: Vec<(u64, NodeIndex)>,
    changes: Vec<(u64, BufferChange<NodeIndex>)>,
    at: Site,
}

#[twins]
impl<'t, T: Float> Var<'t, T> {
    /// Records the gradients of this variable, a single number, with respect to every parameter of the tape on which the number depends.
    /// [`evaluate`](RecordedGradients::evaluate) then computes them. Both calls together do the same as [`backward`](Self::backward) for
    /// parameters, but give no gradients of other variables.
    ///
    /// # Errors
    ///
    /// As for [`backward`](Self::backward), without the errors of the evaluation.
    pub fn try_record_backward(self) -> Result<RecordedGradients<'t, T>, Error> {
        let at = Site::here("record_backward");
        let reached = self.reverse_to_leaves(at)?;
        let record = self.tape.record.borrow();
        let gradient = |&(id, leaf): &(u64, NodeIndex)| {
            let position = reached.binary_search_by_key(&leaf, |&(leaf, _)| leaf).ok()?;
            Some((id, reached[position].1))
        };
        let parameters = record.parameters.iter().filter_map(gradient).collect();
        drop(record);
        Ok(RecordedGradients { loss: self, parameters, changes: self.tape.changes(), at })
    }
}

#[twins]
impl<'t, T: Float> RecordedGradients<'t, T> {
    /// Returns the ids of the parameters that have a gradient.
    pub fn parameters(&self) -> impl Iterator<Item = u64> {
        self.parameters.iter().map(|&(id, _)| id)
    }

    /// Returns the changes of buffers that the tape has recorded, each with its [`Buffer::id`](crate::Buffer::id). The new statistic in a
    /// change is a variable of the tape.
    pub fn changes(&self) -> impl Iterator<Item = (u64, BufferChange<Var<'t, T>>)> {
        let tape = self.loss.tape;
        self.changes.iter().map(move |(id, change)| (*id, change.clone().map(|node| tape.var_of(node))))
    }

    /// Computes the loss and its gradients, and passes each gradient to `sink` as soon as it is complete. The gradients of the last layers
    /// usually come first. Returns the loss, and `Gradients` without gradients. They contain only the changes of buffers and the
    /// [`evaluated_layer`](Gradients::evaluated_layer).
    ///
    /// # Errors
    ///
    /// If there is not enough memory, if an operation refuses its operands' values, or if a custom operation or `sink` returns an error.
    pub fn try_evaluate(self, sink: &mut impl GradientSink<T>) -> Result<(T, Gradients<T>), Error> {
        self.evaluate_into(sink)
    }
}

#[precompiled]
impl<'t, T: Float> RecordedGradients<'t, T> {
    fn evaluate_into(self, sink: &mut dyn GradientSink<T>) -> Result<(T, Gradients<T>), Error> {
        let RecordedGradients { loss, parameters, changes, at } = self;
        let record = loss.tape.record.borrow();
        let mut roots: Vec<NodeIndex> = parameters.iter().map(|&(_, gradient)| gradient).collect();
        roots.extend(statistic_nodes(&changes));
        roots.push(loss.index);
        let remote_parameters = record.parameters.iter().filter(|(id, _)| sink.is_remote(*id));
        let ids = remote_parameters.map(|&(id, node)| (node, id)).collect();
        let sink = RefCell::new(sink);
        let fetch = |id| sink.borrow_mut().fetch(id);
        let (part, positions) = TapePart::new(&record, &roots, Some(RemoteParameters { ids, fetch: &fetch }));
        let plan = plan_for(part.expression(), &positions, T::DTYPE);
        let mut values: Vec<Option<Tensor<T>>> = vec![None; roots.len() - parameters.len()];
        part.run_each(&plan, at, &mut |position, value| match parameters.get(position) {
            Some(&(id, _)) => sink.borrow_mut().gradient(id, value),
            None => {
                values[position - parameters.len()] = Some(value);
                Ok(())
            }
        })?;
        let mut values = values.into_iter();
        let mut next = || values.next().flatten().unwrap_or_else(|| unreachable!("each root has a value"));
        let changes = fill_in_values(changes, &mut next);
        let mut rest = Gradients::from_parts([], changes);
        rest.evaluated_layer = loss.tape.evaluated_layer.get();
        Ok((next().try_item()?, rest))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use wengert_tensor::Generator;
    use wengert_tensor::prelude::*;

    use super::*;
    use crate::{BlendWeight, Buffer, Parameter, Tape};

    /// A sink that keeps all gradients, and that supplies the values of the parameters that are not in the model's memory.
    #[derive(Default)]
    struct Keeping {
        values: HashMap<u64, Tensor<f64>>,
        gradients: Vec<(u64, Tensor<f64>)>,
        fetched: Vec<u64>,
    }

    impl GradientSink<f64> for Keeping {
        fn gradient(&mut self, parameter: u64, gradient: Tensor<f64>) -> Result<(), Error> {
            self.gradients.push((parameter, gradient));
            Ok(())
        }

        fn is_remote(&self, parameter: u64) -> bool {
            self.values.contains_key(&parameter)
        }

        fn fetch(&mut self, parameter: u64) -> Result<Tensor<f64>, Error> {
            self.fetched.push(parameter);
            Ok(self.values[&parameter].clone())
        }
    }

    /// Records the loss of two layers, whose weights are transposed as in `Linear`, and the change of a statistic.
    fn loss<'t>(
        tape: &'t Tape<f64>,
        x: &Tensor<f64>,
        [v, w, b]: [&Parameter<f64>; 3],
        mean: &Buffer<f64>,
    ) -> Var<'t, f64> {
        let hidden = (tape.constant(x).matmul(&tape.parameter(v).t()) + tape.parameter(b)).tanh();
        tape.blend(mean, hidden.mean(0), BlendWeight::Fixed(0.1));
        hidden.matmul(&tape.parameter(w).t()).square().mean(..)
    }

    #[test]
    fn it_is_backward_wherever_the_parameters_are() {
        let generator = &mut Generator::new(0);
        let mut parameter = |shape: [usize; 2]| Parameter::new(Tensor::<f64>::randn(shape, generator));
        let (mut v, mut w, b) = (parameter([5, 3]), parameter([2, 5]), parameter([1, 5]));
        let mean = Buffer::new(Tensor::zeros([5]));
        let x = Tensor::from([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]]);
        let tape = Tape::training(&mut Generator::new(1));
        let recorded = loss(&tape, &x, [&v, &w, &b], &mean);
        let (value, expected) = (recorded.item(), recorded.backward());
        for elsewhere in [false, true] {
            let mut keeping = Keeping::default();
            if elsewhere {
                for own in [&mut v, &mut w] {
                    let nan = Tensor::scalar(f64::NAN).expand(own.value.shape());
                    keeping.values.insert(own.id(), std::mem::replace(&mut own.value, nan));
                }
            }
            let tape = Tape::training(&mut Generator::new(1));
            let recorded = loss(&tape, &x, [&v, &w, &b], &mean).record_backward();
            assert_eq!(recorded.parameters().collect::<Vec<_>>(), [v.id(), b.id(), w.id()]);
            assert_eq!(recorded.changes().count(), 1);
            let (found, rest) = recorded.evaluate(&mut keeping);
            assert_eq!(found, value);
            assert_eq!(keeping.gradients.len(), 3);
            for (own, found) in [&v, &w, &b].map(|own| (own, keeping.gradients.iter().find(|(id, _)| *id == own.id())))
            {
                assert_eq!(&found.unwrap().1, expected.of(own));
            }
            let statistic = |gradients: &Gradients<f64>| match &gradients.changes()[0].1 {
                BufferChange::Blend { new, .. } => new.clone(),
                BufferChange::Count => unreachable!(),
            };
            assert_eq!(statistic(&rest), statistic(&expected));
            // The values of the parameter `w` are fetched twice: for the forward pass, and for the gradient of its layer's input.
            let times = |own: &Parameter<f64>| keeping.fetched.iter().filter(|&&id| id == own.id()).count();
            assert_eq!((times(&v), times(&w)), if elsewhere { (1, 2) } else { (0, 0) });
        }
    }

    /// The gradient with respect to a factor of a product is the other factor itself. No step of the plan computes this
    /// gradient, so the evaluation must fetch it.
    #[test]
    fn a_gradient_that_is_a_parameter_is_fetched() {
        let (p, mut q) = (Parameter::new(Tensor::from([2.0, 3.0])), Parameter::new(Tensor::from([5.0, 7.0])));
        let mut keeping = Keeping::default();
        keeping.values.insert(q.id(), std::mem::replace(&mut q.value, Tensor::scalar(f64::NAN).expand([2])));
        let tape = Tape::<f64>::new();
        let loss = (tape.parameter(&p) * tape.parameter(&q)).sum(..);
        let (value, _) = loss.record_backward().evaluate(&mut keeping);
        assert_eq!(value, 31.0);
        let gradient =
            |own: &Parameter<f64>| keeping.gradients.iter().find(|(id, _)| *id == own.id()).unwrap().1.to_vec();
        assert_eq!((gradient(&p), gradient(&q)), (vec![5.0, 7.0], vec![2.0, 3.0]));
    }

    #[test]
    fn gradients_are_right_after_the_loss_was_read() {
        let w = Parameter::new(Tensor::from([2.0, 3.0]));
        let tape = Tape::<f64>::new();
        let squares = tape.parameter(&w).square();
        let loss = squares.sum(..);
        assert_eq!(loss.item(), 13.0);
        tape.note_evaluation("Dropout");
        let mut keeping = Keeping::default();
        let (found, rest) = loss.record_backward().evaluate(&mut keeping);
        assert_eq!((found, keeping.gradients[0].1.to_vec()), (13.0, vec![4.0, 6.0]));
        assert_eq!(rest.evaluated_layer(), Some("Dropout"));
        // Recording the gradients of a loss that depends on no variable and no parameter returns an error.
        let constant = tape.constant(Tensor::scalar(1.0));
        assert!(matches!(constant.try_record_backward(), Err(Error::NothingReached { .. })));
    }
}
