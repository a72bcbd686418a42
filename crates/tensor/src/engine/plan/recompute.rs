//! Selects the values that several kernels (fused programs) compute again, because reading them from memory would take longer.

use smallvec::SmallVec;

use crate::engine::plan::definition::Id;
use crate::engine::plan::expression::NodeIndex;
use crate::engine::plan::placements::{Kernel, Placement, Placements};
use crate::thresholds::plan as limits;

impl Placements<'_> {
    /// Adds to each kernel (fused program) the values of other kernels that this kernel computes again. Returns, for each value, true if it
    /// must be stored in memory.
    pub(super) fn recompute(&mut self, roots: &[NodeIndex], live: &[bool]) -> Vec<bool> {
        let mut stored = vec![false; self.values.list.len()];
        for &root in roots {
            stored[self.values.value_of(root) as usize] = true;
        }
        for id in (0..live.len() as Id).filter(|&id| live[id as usize]) {
            let space = self.home_kernel(id).map(|kernel| self.kernels[kernel as usize].space);
            for read in self.reads(id) {
                // A value must be stored if it is read by a separate step, or by a kernel (fused program) over another shape.
                if self.home_kernel(read).is_some_and(|kernel| Some(self.kernels[kernel as usize].space) != space) {
                    stored[read as usize] = true;
                }
            }
        }
        let readers = self.other_reader_counts();
        let costs = self.costs(&stored, &readers);
        // For each value, the last kernel to which it was added, so that no kernel computes it twice.
        let mut taken_by = vec![u32::MAX; self.values.list.len()];
        for kernel in 0..self.kernels.len() as u32 {
            let Kernel { space, .. } = self.kernels[kernel as usize];
            let mut members = std::mem::take(&mut self.kernels[kernel as usize].members);
            let mut open: Vec<Id> = Vec::new();
            let elsewhere = |placements: &Self, id: Id| placements.home_kernel(id).is_some_and(|home| home != kernel);
            for &member in &members {
                open.extend(self.reads(member).into_iter().filter(|&read| elsewhere(self, read)));
            }
            while let Some(id) = open.pop() {
                if taken_by[id as usize] == kernel || stored[id as usize] {
                    continue;
                }
                let whole = matches!(self.placements[id as usize], Placement::Whole(_))
                    && self.kernel_over(id, space).is_some();
                let (cost, count) = (costs[id as usize], readers[id as usize]);
                let is_cheap =
                    cost <= limits::MAX_RECOMPUTED_COST && cost.saturating_mul(count) <= limits::MAX_RECOMPUTED_TOTAL;
                if whole && is_cheap {
                    taken_by[id as usize] = kernel;
                    members.push(id);
                    open.extend(self.reads(id).into_iter().filter(|&read| elsewhere(self, read)));
                } else {
                    stored[id as usize] = true;
                }
            }
            members.sort_unstable();
            self.kernels[kernel as usize].members = members;
        }
        stored
    }

    /// Returns, for each value, the number of kernels (fused programs) other than its own that read it.
    fn other_reader_counts(&self) -> Vec<usize> {
        let mut readers = vec![0; self.values.list.len()];
        // For each value, the last kernel that was counted as its reader, so that no kernel is counted twice.
        let mut counted = vec![u32::MAX; self.values.list.len()];
        for kernel in 0..self.kernels.len() as u32 {
            for read in self.kernels[kernel as usize].members.iter().flat_map(|&member| self.reads(member)) {
                let read = read as usize;
                let is_elsewhere = self.home_kernel(read as Id).is_some_and(|home| home != kernel);
                if is_elsewhere && std::mem::replace(&mut counted[read], kernel) != kernel {
                    readers[read] += 1;
                }
            }
        }
        readers
    }

    /// Returns, for each value, the cost of computing it from operands in memory, in additions per element. Operands of other shapes are
    /// not counted. An expensive value counts as an operand in memory if another kernel (fused program) reads it, or if `stored` says that
    /// it is stored. So the derivative of a sigmoid is computed again from the stored sigmoid. If computing a value needs more than two
    /// loads from memory, its cost is unlimited. Reading the value itself is only one load.
    fn costs(&self, stored: &[bool], readers: &[usize]) -> Vec<usize> {
        let shared = |id: Id| stored[id as usize] || readers[id as usize] > 0;
        let mut costs = vec![0usize; self.values.list.len()];
        let mut loads: Vec<SmallVec<[Id; 3]>> = vec![SmallVec::new(); self.values.list.len()];
        for (id, value) in self.values.list.iter().enumerate() {
            let Some(own_cost) = value.definition.cost() else {
                loads[id].push(id as Id);
                continue;
            };
            costs[id] = own_cost;
            let same = |operand: &Id| self.values.list[*operand as usize].shape == value.shape;
            for x in value.definition.operands().into_iter().filter(same) {
                let (before, own) = loads.split_at_mut(id);
                let (cost, read) = match shared(x) && costs[x as usize] > limits::MAX_RECOMPUTED_COST {
                    true => (0, &[x][..]),
                    false => (costs[x as usize], &before[x as usize][..]),
                };
                costs[id] = costs[id].saturating_add(cost);
                let new: SmallVec<[Id; 3]> = read.iter().copied().filter(|load| !own[0].contains(load)).collect();
                own[0].extend(new);
            }
            if loads[id].len() > 2 {
                costs[id] = usize::MAX;
                loads[id].truncate(3);
            }
        }
        costs
    }
}
