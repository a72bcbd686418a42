//! The function whose derivatives are compared with differences. This file computes its values around a point, and its derivatives in
//! reverse and forward mode.

use wengert_tensor::plan::{NodeIndex, Op};
use wengert_tensor::{Float, Shape, Site, Tensor};

use crate::gradcheck::difference::{STEP_MULTIPLES, Samples};
use crate::gradcheck::report::{Failure, Mode, Place, Report};
use crate::inspect::index_of;
use crate::{Error, Tape, Var};

/// The map from tensors to tensors whose derivatives are checked. It is recorded again for each evaluation.
pub(super) struct CheckedMap<'f, T: Float> {
    /// The modes that a failure names. It names the second one if a derivative in forward mode fails. It names the first one if a derivative
    /// in reverse mode or the map itself fails.
    pub(super) modes: [Mode; 2],
    #[allow(clippy::type_complexity)]
    pub(super) record: &'f dyn for<'t> Fn(&'t Tape<T>, &[Var<'t, T>]) -> Result<Vec<Var<'t, T>>, Error>,
    pub(super) inputs: &'f [&'f Tensor<T>],
    pub(super) at: Site,
}

/// A weighted sum of the elements of several tensors, or one of these elements. The elements of all tensors are numbered consecutively.
pub(super) struct Probe {
    pub(super) place: Place,
    pub(super) weights: Vec<(usize, f64)>,
}

impl Probe {
    /// Returns the weights as tensors of `shapes`. The result is `None` for a tensor whose elements have no weights.
    fn weight_tensors<T: Float>(&self, shapes: &[Shape]) -> Vec<Option<Tensor<T>>> {
        let mut start = 0;
        shapes
            .iter()
            .map(|shape| {
                let range = start..start + shape.numel();
                start = range.end;
                let mut data = vec![T::ZERO; shape.numel()];
                let own: Vec<_> = self.weights.iter().filter(|(k, _)| range.contains(k)).collect();
                for &&(k, weight) in &own {
                    data[k - range.start] = T::from_f64(weight);
                }
                (!own.is_empty()).then(|| Tensor::from_vec(data, shape))
            })
            .collect()
    }

    fn weighted_sum(&self, numbers: &[f64]) -> f64 {
        self.weights.iter().map(|&(k, weight)| weight * numbers[k]).sum()
    }
}

impl<T: Float> CheckedMap<'_, T> {
    fn refusal(&self, error: Error) -> Failure {
        Failure::Refused { mode: self.modes[0], error }
    }

    /// Records the map on `tape`. Returns the variables for the tensors `inputs`, and the results of the map.
    #[allow(clippy::type_complexity)]
    fn record_on<'t>(
        &self,
        tape: &'t Tape<T>,
        inputs: &[&Tensor<T>],
    ) -> Result<(Vec<Var<'t, T>>, Vec<Var<'t, T>>), Error> {
        let vars: Vec<Var<'t, T>> = inputs.iter().map(|input| tape.var(input)).collect();
        let outputs = (self.record)(tape, &vars)?;
        tape.check_owns(outputs.iter().copied(), self.at)?;
        Ok((vars, outputs))
    }

    /// Returns the elements of all results of the map at `inputs` as one list, and the shapes of the results.
    fn values(&self, inputs: &[&Tensor<T>]) -> Result<(Vec<f64>, Vec<Shape>), Failure> {
        let tape = Tape::new();
        let (_, outputs) = self.record_on(&tape, inputs).map_err(|error| self.refusal(error))?;
        let roots: Vec<NodeIndex> = outputs.iter().map(|output| output.index).collect();
        let values = tape.evaluate(&roots, self.at).map_err(|error| self.refusal(error))?;
        let shapes = values.iter().map(|value| value.shape().clone()).collect();
        Ok((values.iter().flat_map(to_f64s).collect(), shapes))
    }

    /// Returns the map's values at the point of the check, and the shapes of its results. Returns a failure if the map returns an error, if a
    /// value is not finite, or if a second evaluation gives other values or shapes.
    pub(super) fn values_at_inputs(&self) -> Result<(Vec<f64>, Vec<Shape>), Failure> {
        let (values, shapes) = self.values(self.inputs)?;
        self.require_finite(&values, &shapes, || None)?;
        let (again, shapes_again) = self.values(self.inputs)?;
        require_shapes(&shapes, &shapes_again)?;
        match values.iter().zip(&again).position(|(first, second)| first != second) {
            None => Ok((values, shapes)),
            Some(k) => Err(Failure::NotRepeatable { output: place_of(&shapes, k), first: values[k], second: again[k] }),
        }
    }

    fn require_finite(
        &self,
        values: &[f64],
        shapes: &[Shape],
        moved: impl FnOnce() -> Option<(Place, f64)>,
    ) -> Result<(), Failure> {
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(()),
            Some(k) => Err(Failure::NonFinite {
                mode: self.modes[0],
                output: place_of(shapes, k),
                value: values[k],
                moved: moved(),
            }),
        }
    }

    /// Returns the map's values at points on both sides of `inputs`, along the direction that has the weights of `column`.
    pub(super) fn sample(&self, column: &Probe, step: f64, results: &[Shape]) -> Result<Samples, Failure> {
        let shapes: Vec<Shape> = self.inputs.iter().map(|input| input.shape().clone()).collect();
        let direction: Vec<Option<Tensor<T>>> = column.weight_tensors(&shapes);
        // The step is proportional to the magnitude of the largest element that the direction changes, if this magnitude is above 1.
        let scale = self.inputs.iter().zip(&direction).filter_map(|(x, d)| Some((x, d.as_ref()?)));
        let scale = scale
            .flat_map(|(x, d)| x.iter().zip(d.iter()).filter(|(_, d)| *d != T::ZERO).map(|(x, _)| x.to_f64().abs()))
            .fold(1.0, f64::max);
        let h = step * scale;
        let mut pairs: [[Vec<f64>; 2]; 3] = Default::default();
        let mut steps = STEP_MULTIPLES.map(|distance| distance * h);
        for (pair, step) in pairs.iter_mut().zip(&mut steps) {
            let (mut reached, by) = ([0.0; 2], *step);
            for (side, factor) in [-by, by].into_iter().enumerate() {
                let move_by = |(x, d): (T, T)| {
                    let to = T::from_f64(x.to_f64() + factor * d.to_f64());
                    if d != T::ZERO {
                        reached[side] = to.to_f64();
                    }
                    to
                };
                let moved = self.move_inputs(&direction, move_by);
                let (values, shapes) = self.values(&moved.iter().collect::<Vec<_>>())?;
                require_shapes(results, &shapes)?;
                self.require_finite(&values, &shapes, || Some((column.place.clone(), factor)))?;
                pair[side] = values;
            }
            if let Place::Element { .. } = column.place {
                *step = (reached[1] - reached[0]) / 2.0;
            }
        }
        Ok(Samples { pairs, steps })
    }

    /// Returns the inputs at another point. `move_by` gets each element and its component of the direction, and returns the element at the
    /// new point.
    fn move_inputs(&self, direction: &[Option<Tensor<T>>], mut move_by: impl FnMut((T, T)) -> T) -> Vec<Tensor<T>> {
        let pairs = self.inputs.iter().zip(direction);
        pairs
            .map(|(x, d)| match d {
                None => (*x).clone(),
                Some(d) => Tensor::from_vec(x.iter().zip(d.iter()).map(&mut move_by).collect(), x.shape()),
            })
            .collect()
    }

    /// Records `value` as a constant on the tape of `like`. If it is `None`, records zeros of the shape of `like`.
    fn record_constant<'t>(&self, like: Var<'t, T>, value: Option<Tensor<T>>) -> Result<Var<'t, T>, Error> {
        match value {
            Some(value) => like.tape().try_leaf(&value, Op::Constant, Some(self.at)),
            None => like.try_zeros_like_at(self.at),
        }
    }

    /// Returns the Jacobian, which `vjp` computes row by row: one call for each of `rows`. All rows are evaluated
    /// together. In [`Mode::Reverse`], also writes the list of independent inputs to `report`.
    pub(super) fn reverse(
        &self,
        mode: Mode,
        rows: &[Probe],
        columns: &[Probe],
        results: &[Shape],
        report: &mut Report,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let tape = Tape::new();
        let (vars, outputs) = self.record_on(&tape, self.inputs)?;
        let mut roots: Vec<NodeIndex> = Vec::new();
        for row in or_zero_probe(rows) {
            let seed = |(&output, seed)| Ok((output, self.record_constant(output, seed)?));
            let seeded =
                outputs.iter().zip(row.weight_tensors(results)).map(seed).collect::<Result<Vec<_>, Error>>()?;
            let gradients = tape.reverse(&seeded, &vars, self.at)?;
            if mode == Mode::Reverse {
                report.independent_inputs = (0..vars.len()).filter(|&input| gradients[input].is_none()).collect();
            }
            for (gradient, x) in gradients.into_iter().zip(&vars) {
                roots.push(gradient.map_or_else(|| x.try_zeros_like_at(self.at), Ok)?.index);
            }
        }
        let values = tape.evaluate(&roots, self.at)?;
        let row = |gradients: &[Tensor<T>]| {
            let flat: Vec<f64> = gradients.iter().flat_map(to_f64s).collect();
            columns.iter().map(|column| column.weighted_sum(&flat)).collect()
        };
        Ok(values.chunks(vars.len().max(1)).take(rows.len()).map(row).collect())
    }

    /// Returns the Jacobian, which `jvp` computes column by column: one call for each of `columns`. All columns are evaluated together.
    pub(super) fn forward(&self, rows: &[Probe], columns: &[Probe], shapes: &[Shape]) -> Result<Vec<Vec<f64>>, Error> {
        let tape = Tape::new();
        let (vars, outputs) = self.record_on(&tape, self.inputs)?;
        let mut roots: Vec<NodeIndex> = Vec::new();
        for column in or_zero_probe(columns) {
            let tangents = vars.iter().zip(column.weight_tensors(shapes));
            let moving = tangents.filter(|(_, tangent)| tangent.is_some() || columns.is_empty());
            let moving = moving.map(|(&x, tangent)| Ok((x, self.record_constant(x, tangent)?)));
            let tangents = tape.forward(&outputs, &moving.collect::<Result<Vec<_>, Error>>()?, self.at)?;
            roots.extend(tangents.iter().map(|tangent| tangent.index));
        }
        let values = tape.evaluate(&roots, self.at)?;
        let flat: Vec<Vec<f64>> = values
            .chunks(outputs.len().max(1))
            .take(columns.len())
            .map(|tangents| tangents.iter().flat_map(to_f64s).collect())
            .collect();
        Ok(rows.iter().map(|row| flat.iter().map(|column| row.weighted_sum(column)).collect()).collect())
    }
}

/// Returns `probes`, or a direction of zeros if there are none. So at least one derivative is recorded, and errors of the derivative rules
/// are found.
fn or_zero_probe(probes: &[Probe]) -> &[Probe] {
    const ZEROS: &[Probe] = &[Probe { place: Place::Projection(0), weights: Vec::new() }];
    if probes.is_empty() { ZEROS } else { probes }
}

/// Returns a failure if the function has returned results of other shapes than before.
fn require_shapes(before: &[Shape], now: &[Shape]) -> Result<(), Failure> {
    match before.iter().zip(now).find(|(before, now)| before != now) {
        None => Ok(()),
        Some((first, second)) => Err(Failure::ShapeChanged { first: first.clone(), second: second.clone() }),
    }
}

fn to_f64s<T: Float>(tensor: &Tensor<T>) -> Vec<f64> {
    tensor.iter().map(T::to_f64).collect()
}

/// Returns the place of the element with number `k` if the elements of tensors with the given shapes are numbered consecutively.
fn place_of(shapes: &[Shape], k: usize) -> Place {
    let mut rest = k;
    for (tensor, shape) in shapes.iter().enumerate() {
        if rest < shape.numel() {
            return Place::Element { tensor, index: index_of(shape, rest) };
        }
        rest -= shape.numel();
    }
    unreachable!("there are not {k} elements")
}

/// A generator of weights far from zero, so that no weight hides an error. It is SplitMix64 (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014).
pub(super) struct Random(pub(super) u64);

impl Random {
    /// Returns a number of magnitude 0.5 to 1.5.
    pub(super) fn number(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        let size = 0.5 + (bits >> 12) as f64 / (1u64 << 52) as f64;
        if bits & 1 == 0 { size } else { -size }
    }

    pub(super) fn tensor<T: Float>(&mut self, shape: &Shape) -> Tensor<T> {
        Tensor::from_fn(shape, |_| T::from_f64(self.number()))
    }
}
