//! Records the shapes of the outputs of layers while [`outputs`] runs.

use std::cell::RefCell;
use std::collections::HashMap;

use wengert_tensor::Shape;

/// The key of a module: its address and kind. The address alone is not enough, because a struct and its first field have the same address.
pub(crate) type ModuleKey = (usize, &'static str);

thread_local! {
    static OUTPUTS: RefCell<Option<HashMap<ModuleKey, Shape>>> = const { RefCell::new(None) };
}

/// Returns the key of `module`, which has this kind.
pub(crate) fn key<M: ?Sized>(module: &M, kind: &'static str) -> ModuleKey {
    (std::ptr::from_ref(module).cast::<()>().addr(), kind)
}

/// Records the shape of an output while [`outputs`] runs; otherwise does nothing.
pub(crate) fn record(key: impl FnOnce() -> ModuleKey, shape: impl FnOnce() -> Shape) {
    // While a thread ends, its other thread-local variables may still call layers.
    let _ = OUTPUTS.try_with(|outputs| {
        if let Some(outputs) = &mut *outputs.borrow_mut() {
            outputs.insert(key(), shape());
        }
    });
}

/// Runs `run`. Returns, for each layer that this thread called while it ran, the shape of the layer's last output.
pub(crate) fn outputs(run: impl FnOnce()) -> HashMap<ModuleKey, Shape> {
    /// This guard ends the recording, also if `run` panics.
    struct Recording;
    impl Drop for Recording {
        fn drop(&mut self) {
            OUTPUTS.set(None);
        }
    }
    OUTPUTS.set(Some(HashMap::new()));
    let _recording = Recording;
    run();
    OUTPUTS.take().unwrap_or_default()
}
