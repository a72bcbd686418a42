//! The functions that the page's JavaScript calls. An error of Rust becomes an exception.

use wasm_bindgen::prelude::*;

use crate::trainer::{Result, Trainer};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn log_error(text: &str);
}

/// Prints the message of a panic on the browser's console. Without this function, a panic shows only `unreachable`.
#[wasm_bindgen(start)]
fn show_panics() {
    std::panic::set_hook(Box::new(|panic| log_error(&panic.to_string())));
}

/// A training run that JavaScript controls. See [`Trainer`].
#[wasm_bindgen]
pub struct Training(Trainer);

#[wasm_bindgen]
impl Training {
    /// Starts a training run of a new network on the samples of the table.
    #[wasm_bindgen(constructor)]
    pub fn new(table: &str, seed: u32) -> std::result::Result<Training, JsError> {
        exception(Trainer::new(table, seed.into())).map(Training)
    }

    /// Trains for `steps` batches and returns their losses.
    pub fn steps(&mut self, steps: usize) -> std::result::Result<Vec<f32>, JsError> {
        exception((0..steps).map(|_| self.0.step()).collect())
    }

    /// Returns the number of complete epochs.
    pub fn epoch(&self) -> u32 {
        self.0.epoch() as u32
    }

    /// Returns the share of the test samples that the network reads correctly.
    pub fn accuracy(&self) -> f64 {
        self.0.accuracy()
    }

    /// Returns the probability of each digit for a drawing, or an empty vector for an empty drawing.
    pub fn guess(&self, ink: &[u8]) -> Vec<f32> {
        self.0.guess(ink)
    }

    /// Returns the network as a checkpoint.
    pub fn save(&self) -> std::result::Result<Vec<u8>, JsError> {
        exception(self.0.save())
    }

    /// Replaces the network by the network in a checkpoint.
    pub fn load(&mut self, bytes: &[u8]) -> std::result::Result<(), JsError> {
        exception(self.0.load(bytes))
    }
}

/// Converts an error to an exception with the same message.
fn exception<T>(result: Result<T>) -> std::result::Result<T, JsError> {
    result.map_err(|error| JsError::new(&error.to_string()))
}
