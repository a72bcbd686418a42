//! The shapes that layers give, noted while somebody asks for them.

use std::cell::RefCell;
use std::collections::HashMap;

use wengert_tensor::Shape;

/// A module by its address and kind: the first field of a struct has the address of the struct.
type Place = (usize, &'static str);

thread_local! {
    static OUTPUTS: RefCell<Option<HashMap<Place, Shape>>> = const { RefCell::new(None) };
}

/// Where `module`, of this kind, is.
pub(crate) fn place<M: ?Sized>(module: &M, kind: &'static str) -> Place {
    (std::ptr::from_ref(module).cast::<()>().addr(), kind)
}

/// Notes the shape of an output, where somebody listens.
pub(crate) fn note(place: impl FnOnce() -> Place, shape: impl FnOnce() -> Shape) {
    OUTPUTS.with_borrow_mut(|outputs| {
        if let Some(outputs) = outputs {
            outputs.insert(place(), shape());
        }
    });
}

/// The last output of each layer that is called on this thread while `run` runs.
pub(crate) fn outputs(run: impl FnOnce()) -> HashMap<Place, Shape> {
    /// Ends the listening also where `run` panics.
    struct Listening;
    impl Drop for Listening {
        fn drop(&mut self) {
            OUTPUTS.set(None);
        }
    }
    OUTPUTS.set(Some(HashMap::new()));
    let _listening = Listening;
    run();
    OUTPUTS.take().unwrap_or_default()
}
