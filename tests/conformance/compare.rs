//! Compares results with expected values.

use wengert_tensor::{DType, Element, Shape, Tensor};

use super::format::Mode;

/// Compares shapes and all elements. The error describes the worst element.
pub fn tensors<T: Element>(what: &str, got: &Tensor<T>, want: &Tensor<T>, mode: Mode) -> Result<(), String> {
    shapes(what, got.shape(), want.shape())?;
    let mut wrong = 0;
    let mut worst: Option<(f64, usize, T, T)> = None;
    for (position, (x, y)) in got.iter().zip(want.iter()).enumerate() {
        let (x_number, y_number) = (x.to_f64(), y.to_f64());
        // An f32 is exact in f64, so rounded values can be compared in f64. Large integers are not exact in f64, so integers must be equal.
        let is_float = matches!(T::DTYPE, DType::F32 | DType::F64);
        let is_equal = if is_float { agree(x_number, y_number, mode) } else { x == y };
        if is_equal {
            continue;
        }
        wrong += 1;
        let distance = match (x_number - y_number).abs() {
            distance if distance.is_nan() => f64::INFINITY,
            distance => distance,
        };
        if worst.is_none_or(|(largest_distance, ..)| distance > largest_distance) {
            worst = Some((distance, position, x, y));
        }
    }
    match worst {
        None => Ok(()),
        Some((_, position, x, y)) => Err(format!(
            "{what}: {wrong} of {} elements differ ({}); worst at {:?}: got {x:?}, expected {y:?}",
            want.numel(),
            describe(mode),
            place(want.shape(), position),
        )),
    }
}

/// Compares shapes.
pub fn shapes(what: &str, got: &Shape, want: &Shape) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{what}: got shape {got}, expected {want}")) }
}

/// Compares the strides and the offset of a view. Only dimensions of size above 1 count, in a tensor that has elements.
pub fn layout(what: &str, shape: &[usize], got: (&[isize], usize), want: (&[isize], usize)) -> Result<(), String> {
    if shape.contains(&0) {
        return Ok(());
    }
    let differ = shape.iter().zip(got.0.iter().zip(want.0)).any(|(&size, (got, want))| size > 1 && got != want);
    if differ || got.1 != want.1 {
        return Err(format!(
            "{what}: got strides {:?} and offset {}, expected {:?} and {}",
            got.0, got.1, want.0, want.1
        ));
    }
    Ok(())
}

fn agree(got: f64, want: f64, mode: Mode) -> bool {
    if got.is_nan() || want.is_nan() {
        return got.is_nan() && want.is_nan();
    }
    match mode {
        Mode::Bits => got.to_bits() == want.to_bits(),
        Mode::Value => got == want,
        Mode::Close { rtol, atol } => {
            got == want || got.is_finite() && want.is_finite() && (got - want).abs() <= atol + rtol * want.abs()
        }
    }
}

fn describe(mode: Mode) -> String {
    match mode {
        Mode::Bits => "compared by bits".into(),
        Mode::Value => "compared by value".into(),
        Mode::Close { rtol, atol } => format!("rtol {rtol:e}, atol {atol:e}"),
    }
}

/// Returns the index of element number `position` in row-major order.
fn place(shape: &Shape, mut position: usize) -> Vec<usize> {
    let mut index = vec![0; shape.rank()];
    for axis in (0..shape.rank()).rev() {
        index[axis] = position % shape[axis];
        position /= shape[axis];
    }
    index
}
