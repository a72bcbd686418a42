//! A read-only view of the program that a tape has recorded, for code that converts the program to another format.

use std::any::Any;
use std::panic::Location;

use wengert_tensor::ops::{ConvolutionForm, MaxPoolForm, MeanPoolForm, Slot};
use wengert_tensor::plan::{NodeIndex, Op, ResultOrigin};
use wengert_tensor::{Axes, Float, Shape, Tensor, View};

use crate::rules::{
    Convolution, CumSum, Factors, IndexAdd, IndexSelect, MaxPooling, MeanPooling, Norm, ScatterAdd, Take, Variance,
    WithDerivative,
};
use crate::tape::{Operation, Record};
use crate::{Tape, Var};

/// The program that a tape has recorded.
#[derive(Clone, Debug)]
pub struct Program<T: Float> {
    /// The nodes of the tape, in the order of recording.
    pub steps: Vec<Step<T>>,
    /// The id of each parameter on the tape, with its position in `steps`.
    pub parameters: Vec<(u64, usize)>,
}

/// One node of a [`Program`].
#[derive(Clone, Debug)]
pub struct Step<T: Float> {
    /// The operation. Its fields that are indices into lists of the tape have no meaning here.
    pub op: Op,
    /// The name of the operation.
    pub name: &'static str,
    /// The positions of the inputs in the program.
    pub inputs: Vec<usize>,
    /// The shape of the result.
    pub shape: Shape,
    /// The line of code that recorded the operation.
    pub recorded: &'static Location<'static>,
    /// The data of a leaf.
    pub data: Option<Tensor<T>>,
    /// The view of an [`Op::View`] or [`Op::Embed`].
    pub view: Option<View>,
    /// The arguments of an [`Op::Other`].
    pub custom: Option<Custom>,
}

/// The arguments of an operation that the engine does not know.
#[derive(Clone, Debug)]
pub enum Custom {
    /// The result equals the first input.
    Same,
    /// The softmax of the second input, or its logarithm. The first input has the values of the result.
    Softmax {
        /// The dimension along which the softmax is taken.
        axis: usize,
        /// True for the logarithm of the softmax.
        log: bool,
    },
    /// The elements at row-major positions.
    Take {
        /// For each element of the result, its row-major position in the input.
        positions: Tensor<i64>,
    },
    /// Zeros of the result's shape, with the input added at row-major positions.
    ScatterAdd {
        /// For each element of the input, its row-major position in the result.
        positions: Tensor<i64>,
    },
    /// Slices of the input.
    IndexSelect {
        /// The dimension along which the input is cut into slices.
        axis: usize,
        /// For each slice of the result, its index in the input.
        index: Tensor<i64>,
    },
    /// Zeros, with the slices of each input added.
    IndexAdd {
        /// The dimension along which the inputs are cut into slices.
        axis: usize,
        /// For each input, the index in the result of each slice.
        indices: Vec<Tensor<i64>>,
        /// The size of the result along `axis`.
        size: usize,
    },
    /// The cumulative sum.
    CumSum {
        /// The dimension along which the sum runs.
        axis: usize,
    },
    /// The variance. The result keeps the dimensions `axes` with size 1.
    Variance {
        /// The dimensions over which the variance is taken.
        axes: Axes,
        /// The number that is subtracted from the number of elements in the divisor.
        correction: f64,
    },
    /// The norm. The result keeps the dimensions `axes` with size 1.
    Norm {
        /// The order of the norm.
        ord: f64,
        /// The dimensions over which the norm is taken.
        axes: Axes,
    },
    /// One of the three arrays of a convolution, computed from the other two arrays.
    Convolution {
        /// The windows of the convolution.
        form: ConvolutionForm,
        /// The array that is computed.
        slot: Slot,
    },
    /// A maximum pooling, or its adjoint.
    MaxPooling {
        /// The windows of the pooling.
        form: MaxPoolForm,
        /// True for the adjoint.
        is_adjoint: bool,
    },
    /// A mean pooling, or its adjoint.
    MeanPooling {
        /// The windows of the pooling.
        form: MeanPoolForm,
        /// True for the adjoint.
        is_adjoint: bool,
    },
    /// Any other operation.
    Unknown,
}

impl Custom {
    fn new<T: Float>(operation: &dyn Operation<T>) -> Self {
        let any: &dyn Any = operation;
        if let Some(WithDerivative::Softmax { axis, log }) = any.downcast_ref() {
            Custom::Softmax { axis: *axis, log: *log }
        } else if operation.result_origin() != ResultOrigin::Computed || any.is::<Factors>() {
            Custom::Same
        } else if let Some(Take(positions)) = any.downcast_ref() {
            Custom::Take { positions: positions.clone() }
        } else if let Some(ScatterAdd { positions, .. }) = any.downcast_ref() {
            Custom::ScatterAdd { positions: positions.clone() }
        } else if let Some(IndexSelect { axis, index }) = any.downcast_ref() {
            Custom::IndexSelect { axis: *axis, index: index.clone() }
        } else if let Some(IndexAdd { axis, indices, size }) = any.downcast_ref() {
            Custom::IndexAdd { axis: *axis, indices: indices.clone(), size: *size }
        } else if let Some(CumSum { axis }) = any.downcast_ref() {
            Custom::CumSum { axis: *axis }
        } else if let Some(Variance { axes, correction, .. }) = any.downcast_ref() {
            Custom::Variance { axes: axes.clone(), correction: *correction }
        } else if let Some(Norm { ord, axes }) = any.downcast_ref() {
            Custom::Norm { ord: *ord, axes: axes.clone() }
        } else if let Some(Convolution { form, slot }) = any.downcast_ref() {
            Custom::Convolution { form: form.clone(), slot: *slot }
        } else if let Some(MaxPooling { form, is_adjoint, .. }) = any.downcast_ref() {
            Custom::MaxPooling { form: form.clone(), is_adjoint: *is_adjoint }
        } else if let Some(MeanPooling { form, is_adjoint }) = any.downcast_ref() {
            Custom::MeanPooling { form: form.clone(), is_adjoint: *is_adjoint }
        } else {
            Custom::Unknown
        }
    }
}

impl<T: Float> Step<T> {
    fn new(record: &Record<T>, index: NodeIndex) -> Self {
        let op = record.op(index);
        Step {
            op,
            name: record.name(index),
            inputs: record.operands(index).iter().map(|&input| input as usize).collect(),
            shape: record.shape(index).clone(),
            recorded: record.location(index),
            data: record.leaf(index),
            view: match op {
                Op::View(number) | Op::Embed(number) => Some(record.view(number).clone()),
                _ => None,
            },
            custom: match op {
                Op::Other(number) => Some(Custom::new(&**record.operation(number))),
                _ => None,
            },
        }
    }
}

impl<T: Float> Tape<T> {
    /// Returns the program that this tape has recorded. The tensors of leaves are shared and not copied.
    #[doc(hidden)]
    pub fn program(&self) -> Program<T> {
        let record = self.record.borrow();
        let parameters = record.parameters.iter().map(|&(id, index)| (id, index as usize)).collect();
        Program { steps: (0..record.len() as NodeIndex).map(|index| Step::new(&record, index)).collect(), parameters }
    }
}

impl<T: Float> Var<'_, T> {
    /// Returns the position of this variable in [`Tape::program`].
    #[doc(hidden)]
    pub fn node(self) -> usize {
        self.index as usize
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::Unary;
    use wengert_tensor::plan::Op;
    use wengert_tensor::prelude::*;

    use super::Custom;
    use crate::Tape;

    #[test]
    fn a_program_has_the_arguments_of_each_step() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([[1.0, 2.0], [3.0, 4.0]]));
        let y = x.exp().cumsum(1).softmax(0);
        let z = y.index_select(0, &Tensor::from([1, 0, 1]));
        let program = tape.program();
        assert_eq!(program.steps[x.node()].data.as_ref().unwrap().to_vec(), [1.0, 2.0, 3.0, 4.0]);
        let exp = program.steps.iter().position(|step| step.op == Op::Unary(Unary::Exp)).unwrap();
        assert_eq!(program.steps[exp].inputs, [x.node()]);
        let cumsum = program.steps.iter().find(|step| step.name == "cumsum").unwrap();
        assert!(matches!(cumsum.custom, Some(Custom::CumSum { axis: 1 })) && cumsum.inputs == [exp]);
        assert!(matches!(program.steps[y.node()].custom, Some(Custom::Softmax { axis: 0, log: false })));
        let Some(Custom::IndexSelect { axis: 0, index }) = &program.steps[z.node()].custom else { panic!("{z:?}") };
        assert_eq!((index.to_vec(), &program.steps[z.node()].shape[..]), (vec![1, 0, 1], &[3, 2][..]));
        assert!(program.steps[z.node()].recorded.file().ends_with("program.rs"));
    }
}
