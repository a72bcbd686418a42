//! Every threshold of this crate: its unit, the trade-off it decides, and where its value was measured.
//!
//! The cost of each instruction is beside its name, in `scalar/instruction.rs`, in units of one addition per element.
//!
//! Machines: *Cascade Lake* is a virtual machine with 2 cores of an Intel Xeon (AVX-512), *Zen 4* one with 2 cores of an AMD EPYC
//! (AVX-512). A value without a machine is a bound of memory or of search, and was not tuned.

/// Planning: which values are fused, computed again, or written where they belong.
pub(crate) mod plan {
    /// Elements of a row. The longest row that is reduced within a pass: the registers of one row must stay in the second-level
    /// cache. Cascade Lake.
    pub(crate) const MAX_ROW: usize = 1 << 14;

    /// Elements of a tensor. The largest tensor that is reduced to one number within a pass, which one thread runs. Cascade Lake.
    pub(crate) const MAX_WHOLE: usize = 1 << 12;

    /// Elements of a row. Shorter rows are reduced after the pass: running a program row by row costs more than a second pass, unless
    /// there are at most [`FEW_ROWS`]. Cascade Lake.
    pub(crate) const MIN_ROW: usize = 16;

    /// Rows, at most, that are processed one by one at any length. Cascade Lake.
    pub(crate) const FEW_ROWS: usize = 4;

    /// Elements per result. A reduction whose tasks have totals of their own must have so many elements for each total. Cascade Lake.
    pub(crate) const ELEMENTS_PER_TOTAL: usize = 16;

    /// Values. The longest search for the operands from which a row is computed.
    pub(crate) const MAX_SEARCHED: usize = 64;

    /// Rows. Products of at most so many rows share a transposed right matrix as a copy in order: each would otherwise rearrange the
    /// matrix by itself, which takes a good part of its time. Cascade Lake.
    pub(crate) const FEW_PRODUCT_ROWS: usize = 64;

    /// Additions per element. A value of at most this cost since memory is computed again by each kernel that reads it: writing and
    /// reading it would take longer. Cascade Lake.
    pub(crate) const MAX_RECOMPUTED_COST: usize = 7;

    /// Elements. A concatenation of fewer is copied: its share of the planning would take longer than the copy. Zen 4.
    pub(crate) const MIN_CONCATENATION: usize = 1 << 10;

    /// Elements of a row. The longest row of operands that a program writes side by side: its registers for the row must stay in the
    /// second-level cache. Cascade Lake.
    pub(crate) const MAX_CONCATENATED_ROW: usize = 1 << 12;

    /// Elements. The operands of one joined product are at most so many: their concatenations are copies, 64 MiB of f32.
    pub(crate) const MAX_JOINED: usize = 1 << 24;

    /// Parts per slice. The sum of overlapping slices is cut into at most so many parts for each slice: more parts are more steps of
    /// fewer elements. Cascade Lake (causal attention).
    pub(crate) const MAX_PARTS: usize = 8;

    /// Plans that a thread keeps. A step that reads many values has a plan for each.
    pub(crate) const MAX_PLANS: usize = 1024;

    /// Nodes of all plans that a thread keeps. The planning of a larger expression is small beside its run.
    pub(crate) const MAX_PLANNED_NODES: usize = 1 << 20;

    /// Shapes and views of an expression that are compared one by one; further shapes are hashed, further views are not merged.
    pub(crate) const MAX_SCANNED: usize = 16;
}
