//! The memory of records whose tapes are gone, which the next tapes of the thread take over.

use std::any::Any;
use std::cell::RefCell;
use std::ops::Deref;

use wengert_tensor::Float;

use crate::record::record::Record;

/// Records kept for a thread, at most.
const MOST: usize = 4;

/// Nodes of a record that is kept, at most: the memory of a very long program is given back.
const LONGEST: usize = 1 << 16;

thread_local! {
    static SPARE: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// A record whose memory the next tape takes over.
pub(crate) struct Kept<T: Float, O: 'static>(Option<Box<RefCell<Record<T, O>>>>);

impl<T: Float, O: 'static> Kept<T, O> {
    /// An empty record, in memory of an earlier one where there is some.
    pub(crate) fn take() -> Self {
        let spare = SPARE.try_with(|spares| {
            let mut spares = spares.borrow_mut();
            let position = spares.iter().rposition(|spare| spare.is::<RefCell<Record<T, O>>>())?;
            spares.swap_remove(position).downcast().ok()
        });
        Kept(Some(spare.ok().flatten().unwrap_or_else(|| Box::new(RefCell::new(Record::new())))))
    }
}

impl<T: Float, O: 'static> Deref for Kept<T, O> {
    type Target = RefCell<Record<T, O>>;

    #[inline]
    fn deref(&self) -> &RefCell<Record<T, O>> {
        match &self.0 {
            Some(record) => record,
            None => unreachable!("a tape has its record until it is dropped"),
        }
    }
}

impl<T: Float, O: 'static> Drop for Kept<T, O> {
    fn drop(&mut self) {
        let Some(mut record) = self.0.take().filter(|record| record.borrow().len() <= LONGEST) else { return };
        record.get_mut().clear();
        // Where the thread is ending there is nobody to keep it for.
        let _ = SPARE.try_with(|spares| {
            let mut spares = spares.borrow_mut();
            if spares.len() < MOST {
                spares.push(record);
            }
        });
    }
}
