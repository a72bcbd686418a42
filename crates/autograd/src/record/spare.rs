//! Keeps the memory of dropped tapes, so that later tapes of the same thread reuse it.

use std::any::Any;
use std::cell::RefCell;
use std::ops::Deref;

use wengert_tensor::Float;

use crate::record::record::Record;

/// The maximum number of records (contents of tapes) that a thread keeps. Usually no more tapes exist at the same time.
const MAX_RECORDS: usize = 4;

/// The maximum number of nodes of a record (the contents of a tape) that is kept. It limits the kept memory to a few megabytes per record.
/// Larger records are freed.
const MAX_NODES: usize = 1 << 16;

thread_local! {
    static SPARE: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// The record of a tape. Its memory may come from a dropped tape of the same thread. When this record is dropped, a
/// later tape can reuse the memory, within the limits [`MAX_RECORDS`] and [`MAX_NODES`].
pub(crate) struct RecycledRecord<T: Float, O: 'static>(Option<Box<RefCell<Record<T, O>>>>);

impl<T: Float, O: 'static> RecycledRecord<T, O> {
    /// Returns an empty record. Reuses the memory of an earlier record if possible.
    pub(crate) fn take() -> Self {
        let spare = SPARE.try_with(|spares| {
            let mut spares = spares.borrow_mut();
            let position = spares.iter().rposition(|spare| spare.is::<RefCell<Record<T, O>>>())?;
            spares.swap_remove(position).downcast().ok()
        });
        RecycledRecord(Some(spare.ok().flatten().unwrap_or_else(|| Box::new(RefCell::new(Record::new())))))
    }
}

impl<T: Float, O: 'static> Deref for RecycledRecord<T, O> {
    type Target = RefCell<Record<T, O>>;

    #[inline]
    fn deref(&self) -> &RefCell<Record<T, O>> {
        match &self.0 {
            Some(record) => record,
            None => unreachable!("a tape has its record until it is dropped"),
        }
    }
}

impl<T: Float, O: 'static> Drop for RecycledRecord<T, O> {
    fn drop(&mut self) {
        let Some(mut record) = self.0.take().filter(|record| record.borrow().len() <= MAX_NODES) else { return };
        record.get_mut().clear();
        // `try_with` fails while the thread ends. The record is then dropped.
        let _ = SPARE.try_with(|spares| {
            let mut spares = spares.borrow_mut();
            if spares.len() < MAX_RECORDS {
                spares.push(record);
            }
        });
    }
}
