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

/// Blocks and tasks of elementwise work.
pub(crate) mod blocks {
    /// Elements of a block. A larger block amortizes the start of each instruction; the operands of a smaller one fit into the first-level
    /// cache. Cascade Lake, Zen 4.
    pub(crate) const BLOCK: usize = 1024;

    /// Elements of all blocks. Fewer run on one thread, because starting a second one takes longer. Cascade Lake.
    pub(crate) const MIN_PARALLEL: usize = 1 << 16;

    /// Elements of a task of several blocks. More leave threads without work at the end, fewer cost more starts. Cascade Lake.
    pub(crate) const TASK: usize = MIN_PARALLEL / 4;

    /// Tasks of an operation, at most. With more, the successive reads of a thread are not adjacent, which prefetching needs. Cascade Lake.
    pub(crate) const MAX_TASKS: usize = 64;

    /// Bytes of a result. Larger results are written with non-temporal stores, if the last-level cache does not hold them with their
    /// operands. Cascade Lake, Zen 4.
    pub(crate) const MIN_STREAMED: usize = 16 << 20;

    /// Bytes of a result and its operands, at most, for which a last-level cache of 32 MiB is worth writing to. Zen 4.
    pub(crate) const MAX_CACHED: usize = 36 << 20;

    /// Elements of a row. Longer rows are cut into blocks, so that operands need not be gathered; a block has several shorter rows.
    /// Cascade Lake, Zen 4.
    pub(crate) const LONG_ROW: usize = 128;

    /// The same for a program of several instructions, which gathers an operand once and reads it several times. Cascade Lake, Zen 4.
    pub(crate) const LONG_ROW_OF_PROGRAM: usize = 512;

    /// Bytes of the longest vectors (AVX-512).
    pub(crate) const VECTOR_BYTES: usize = 64;

    /// Vectors of a small block, at most. More leave too few registers for the values of a program. Cascade Lake.
    pub(crate) const MAX_SMALL_BLOCK: usize = 4;

    /// Bytes of all small blocks of a program, at most: a quarter of the second-level cache of most processors.
    pub(crate) const MAX_SMALL_BLOCKS: usize = 1 << 18;

    /// Elements per total. A task that reduces fewer spends more time on clearing and combining its totals than on the reduction.
    pub(crate) const MIN_PER_TOTAL: usize = 4;

    /// Blocks that are accumulated before their total is put aside. More mean larger rounding errors, fewer mean more work.
    pub(crate) const STAGE: usize = 16;
}

/// Rows of operands that broadcast.
pub(crate) mod rows {
    /// Elements of a row. Shorter rows are copied, several to a block: a loop for each row takes longer. Cascade Lake, Zen 4.
    pub(crate) const MIN_LOOPED_ROW: usize = 12;

    /// The same if the row of an operand repeats: such rows are copied faster. Cascade Lake, Zen 4.
    pub(crate) const MIN_LOOPED_REPEATED_ROW: usize = 24;

    /// Elements of a repeating row. Shorter rows are copied; loops over longer rows are fast enough. Cascade Lake, Zen 4.
    pub(crate) const MIN_READ_ROW: usize = 128;

    /// Elements of the period of a repeating operand, at most, that is copied: the copy must stay in the first-level cache.
    pub(crate) const MAX_PERIOD: usize = 4096;

    /// Elements of a row beside one number for each row. For shorter rows the numbers are copied first. Zen 4.
    pub(crate) const MIN_SCALED_ROW: usize = 32;

    /// Elements of a row. Operands with longer rows are not gathered. Cascade Lake.
    pub(crate) const LONG_GATHERED_ROW: usize = 128;

    /// Elements of a gathered piece, at most.
    pub(crate) const MAX_PIECE: usize = 2 * LONG_GATHERED_ROW;

    /// Elements of the longest vector with the shortest elements that arithmetic has.
    pub(crate) const VECTOR_ELEMENTS: usize = 16;

    /// Rows, at most, that are never gathered: gathering takes longer however short they are. Zen 4.
    pub(crate) const FEW_GATHERED_ROWS: usize = 8;

    /// Elements of a row. Longer rows are never gathered, however many there are. Zen 4.
    pub(crate) const MIN_UNGATHERED_ROW: usize = 16;

    /// Elements that a plain loop copies, at most: for so few a `memcpy` call costs more.
    pub(crate) const MAX_LOOP_COPY: usize = 16;
}

/// Programs whose rows are shorter than a vector.
pub(crate) mod short_axis {
    /// Elements of a short axis, at most. A longer row is worth a loop of its own. Cascade Lake.
    pub(crate) const MAX_LANES: usize = 32;

    /// Elements of a block over all positions of the axis. Several values of a block must stay in the second-level cache. Cascade Lake.
    pub(crate) const BLOCK: usize = 8192;

    /// Elements for each position of the axis, at least: a call for each must be worth it. Cascade Lake.
    pub(crate) const MIN_LANE: usize = 32;

    /// Elements. If the last of the other dimensions is shorter, the longest of them takes its place. Cascade Lake.
    pub(crate) const LONG_DIMENSION: usize = 128;
}

/// Tiles of transposed matrices.
pub(crate) mod transpose {
    /// Rows and columns of the squares that are transposed at once: the registers of AVX-512. A matrix with a shorter side is not tiled.
    pub(crate) const SIDE: usize = 16;

    /// Rows of a tile: two cache lines of each column. Zen 4.
    pub(crate) const TALL: usize = 32;

    /// Columns of a tile: long enough rows for the other operands and the result. Zen 4.
    pub(crate) const WIDE: usize = 256;

    /// Elements from one row of a tile to the next.
    pub(crate) const PITCH: usize = WIDE + SIDE;

    /// Elements of the buffer of a tile; the last tile includes a remainder smaller than a square.
    pub(crate) const TILE: usize = (TALL + SIDE) * PITCH;
}

/// Matrix products.
pub(crate) mod matmul {
    /// Columns of a floating-point product, at most, that is computed by its definition.
    pub(crate) const FEW_COLUMNS: usize = 64;

    /// Columns, at most, of a product of the kernel for few columns, which keeps one sum for each in a register.
    pub(crate) const THIN_COLUMNS: usize = 16;

    /// Elements of each column that are read before the next columns: so many rows of the left side stay in the first-level cache.
    pub(crate) const SEGMENT: usize = 1024;

    /// Elements of a row that are summed at once.
    pub(crate) const STRIP: usize = 4096;

    /// Multiplications of a product, at most, that is computed by its definition: `gemm` takes longer to start.
    pub(crate) const MAX_BY_DEFINITION: usize = FEW_COLUMNS;

    /// Multiplications of a product, at most, for the kernel without rearrangement. `gemm` rearranges both sides. Cascade Lake, Zen 4.
    pub(crate) const MAX_COMPACT: usize = 1 << 13;

    /// The same if both sides are read in place. Less than a part of a product that is split by rows has. Cascade Lake, Zen 4.
    pub(crate) const MAX_COMPACT_IN_PLACE: usize = 1 << 16;

    /// The same for a product that is not split, on AMD's processors, which read rows across cache lines as fast as others. Zen 4.
    pub(crate) const MAX_COMPACT_WHOLE: usize = 1 << 18;

    /// Rows of a result, at most, for the kernel without rearrangement: the rearrangement of the right side takes as long as so few rows.
    pub(crate) const MAX_COMPACT_ROWS: usize = 12;

    /// Elements of a single row, at most, that the same kernel computes with all sums in registers.
    pub(crate) const MAX_COMPACT_ROW: usize = 128;

    /// Terms of a sum, at least, for the kernel for few columns.
    pub(crate) const MIN_THIN_TERMS: usize = 64;

    /// Multiplications. A smaller product runs on one thread. Cascade Lake.
    pub(crate) const MIN_PARALLEL: usize = 1 << 18;

    /// The same for one column, where each element of the left side is read for one multiplication. Zen 4.
    pub(crate) const MIN_PARALLEL_COLUMN: usize = 1 << 15;

    /// Terms of a sum, at least, that is split among threads.
    pub(crate) const MIN_SPLIT_SUM: usize = 1024;

    /// Rows of a unit of row splits: as many as the kernels compute at once.
    pub(crate) const ROW_UNIT: usize = 8;

    /// Columns of a unit of column splits: as many as the kernels compute at once.
    pub(crate) const COLUMN_UNIT: usize = 64;

    /// Columns of a unit in a product with fewer than [`MIN_WIDE`] columns.
    pub(crate) const NARROW_COLUMN_UNIT: usize = 16;

    /// Columns of a wide product, at least.
    pub(crate) const MIN_WIDE: usize = 512;

    /// Rows. A product of more is split by columns only if it has twice as many columns as rows.
    pub(crate) const MANY_ROWS: usize = 256;

    /// Parts of a product that is split by columns, at most. Each part reads the whole left side.
    pub(crate) const MAX_COLUMN_PARTS: usize = 16;
}

/// Convolutions.
pub(crate) mod conv {
    /// Elements of a tile of columns, at most, but at least one window: the tile must stay in the second-level cache. Cascade Lake.
    pub(crate) const TILE: usize = 1 << 16;

    /// Partial sums over the batch, at most. More give work to more threads, but each is as large as the weight.
    pub(crate) const MAX_SUMS: usize = 8;

    /// Windows that are computed before they are copied to the result: a multiple of the windows that each kernel computes at once.
    pub(crate) const CHUNK: usize = 384;

    /// Windows that the kernels compute at once, approximately.
    pub(crate) const WINDOWS_AT_ONCE: usize = 48;

    /// Elements that kernels may read past the last valid one.
    pub(crate) const SLACK: usize = 128;

    /// Elements of a run whose dot products are computed one after the other: the run must stay in the first-level cache.
    pub(crate) const SEGMENT: usize = 2048;

    /// Elements of the planes of a group of dot products, approximately.
    pub(crate) const RUN_ELEMENTS: usize = 1 << 17;
}

/// Pooling.
pub(crate) mod pool {
    /// Elements of the planes of a part, approximately. Fewer cost more starts, more leave threads without work.
    pub(crate) const PART: usize = 1 << 14;

    /// Windows that are computed at once: a vector of AVX2.
    pub(crate) const WINDOWS_AT_ONCE: usize = 8;
}

/// Sorting and running sums.
pub(crate) mod scan {
    /// Elements. Fewer run on one thread.
    pub(crate) const MIN_PARALLEL: usize = 1 << 16;

    /// Adjacent lanes that are processed together: a cache line of f32.
    pub(crate) const ADJACENT: usize = 16;

    /// Elements of a lane, at least, that several threads sort.
    pub(crate) const MIN_SHARED_LANE: usize = 1 << 15;
}

/// Parts of other kernels.
pub(crate) mod parts {
    /// Columns in a part of a row: enough that few cache lines belong to two parts.
    pub(crate) const COLUMNS: usize = 32;

    /// Elements of a part of an optimiser's step: enough to make the start on another thread cheap.
    pub(crate) const STEP_PART: usize = 1 << 15;

    /// Elements of an optimiser's step in local arrays, which need no check for overlap.
    pub(crate) const STEP_BLOCK: usize = 64;
}

/// Operations.
pub(crate) mod ops {
    /// Elements. For fewer, several passes take less time than the trace of a fused one.
    pub(crate) const MIN_FUSED: usize = 1 << 12;

    /// Queries. The number of queries in a block under a causal mask is a multiple.
    pub(crate) const QUERY_UNIT: usize = 32;

    /// Blocks of queries, at most. More blocks skip more scores, but each has a cost of its own. Cascade Lake.
    pub(crate) const MAX_QUERY_BLOCKS: usize = 8;

    /// Scores. From `n²` times this number on, `n` blocks are used. Cascade Lake.
    pub(crate) const SCORES_PER_BLOCK: usize = 1 << 14;
}

/// Memory.
pub(crate) mod memory {
    /// Bytes. Smaller requests are not compared with the available memory: the check reads a file of the system.
    pub(crate) const MIN_CHECKED: usize = 256 << 20;

    /// Bytes. Smaller buffers come from the allocator, which is as fast as the pool.
    pub(crate) const MIN_POOLED: usize = 1 << 10;

    /// Bytes in the pool, at most, unless `set_pool_capacity` changes it.
    pub(crate) const POOL_CAPACITY: usize = 1 << 30;

    /// Bytes of a cache line.
    pub(crate) const CACHE_LINE: usize = 64;

    /// Bytes of a huge page.
    pub(crate) const HUGE_PAGE: usize = 2 << 20;

    /// Bytes. Larger buffers use huge pages, which need fewer page faults. Cascade Lake.
    pub(crate) const MIN_HUGE: usize = 4 << 20;
}
