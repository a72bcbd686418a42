//! Thresholds of this crate: the unit of each one, and the trade-off that it decides. The thresholds of reductions and of threads are
//! beside their code.
//!
//! The cost of each instruction is beside its name, in `scalar/instruction.rs`, in units of one addition per element.
//!
//! The values were measured on virtual machines with two cores and AVX-512, of Intel Xeon and AMD EPYC processors, in November 2026. The
//! machine of a single value was not recorded. Values that limit memory or the length of a search were not tuned.

/// Planning: the values that are fused, computed again, or written directly into a larger result.
pub(crate) mod plan {
    /// Elements of a row. The longest row that is reduced within a pass: the values of one row must stay in the second-level cache.
    pub(crate) const MAX_ROW: usize = 1 << 14;

    /// Elements of a tensor. The largest tensor that is reduced to one number within a pass: one thread runs the pass.
    pub(crate) const MAX_WHOLE: usize = 1 << 12;

    /// Elements of a row. Shorter rows are reduced after the pass: running a program row by row costs more than a second pass, unless there
    /// are at most [`FEW_ROWS`].
    pub(crate) const MIN_ROW: usize = 16;

    /// Rows. At most this many rows are reduced within the pass even if they are shorter than [`MIN_ROW`].
    pub(crate) const FEW_ROWS: usize = 4;

    /// Elements per result. If each task of a reduction has its own totals, the reduction must have this many elements for each total.
    pub(crate) const ELEMENTS_PER_TOTAL: usize = 16;

    /// Values. The largest number of values that the search for a row's operands visits.
    pub(crate) const MAX_SEARCHED: usize = 64;

    /// Rows. Products of at most this many rows share a row-major copy of a transposed right matrix. Without the copy, each product would
    /// rearrange the matrix, which takes a considerable part of its time.
    pub(crate) const FEW_PRODUCT_ROWS: usize = 64;

    /// Additions per element. The cost to compute a value from operands in memory. Up to this cost, each kernel that reads the value
    /// computes it again, because writing and reading it would take longer.
    pub(crate) const MAX_RECOMPUTED_COST: usize = 7;

    /// Elements. A smaller concatenation is copied, because planning its memory would take longer than the copy.
    pub(crate) const MIN_CONCATENATION: usize = 1 << 10;

    /// Elements of a row. The longest row of operands that a program writes side by side: the program's values for the row must stay in the
    /// second-level cache.
    pub(crate) const MAX_CONCATENATED_ROW: usize = 1 << 12;

    /// Elements. The largest operand of a joined product, 64 MiB of f32: joining copies the operands.
    pub(crate) const MAX_JOINED: usize = 1 << 24;

    /// Parts per slice. The sum of overlapping slices is cut into at most this many parts for each slice. More parts mean more steps with
    /// fewer elements each. Measured with causal attention.
    pub(crate) const MAX_PARTS: usize = 8;

    /// The number of plans that a thread keeps. A training step that reads many values has a plan for each of them.
    pub(crate) const MAX_PLANS: usize = 1024;

    /// The number of nodes of all plans that a thread keeps. Planning a larger expression takes little time compared with its run.
    pub(crate) const MAX_PLANNED_NODES: usize = 1 << 20;

    /// The number of shapes and views of an expression that are compared directly. Further shapes are hashed, and further views are not
    /// merged.
    pub(crate) const MAX_SCANNED: usize = 16;
}

/// Blocks and tasks of elementwise work.
pub(crate) mod blocks {
    /// Elements of a block. A larger block amortizes the start of each instruction. The operands of a smaller block fit into the
    /// first-level cache.
    pub(crate) const BLOCK: usize = 1024;

    /// Elements of an operation. Smaller operations run on one thread, because starting a second thread takes longer.
    pub(crate) const MIN_PARALLEL: usize = 1 << 16;

    /// Elements of a task of several blocks. Longer tasks leave threads without work at the end, shorter tasks need more starts.
    pub(crate) const TASK: usize = MIN_PARALLEL / 4;

    /// The largest number of tasks of an operation. With more tasks, successive reads of a thread are less often adjacent, so prefetching
    /// works worse.
    pub(crate) const MAX_TASKS: usize = 64;

    /// Bytes of a result. Larger results are written with non-temporal stores, if results and operands together exceed [`MAX_CACHED`].
    pub(crate) const MIN_STREAMED: usize = 16 << 20;

    /// Bytes of a result and its operands. Up to this size, writing the result into a last-level cache of 32 MiB is faster than bypassing
    /// it.
    pub(crate) const MAX_CACHED: usize = 36 << 20;

    /// Elements of a row. Rows of this length or more are cut into blocks separately, so that operands are not gathered. Shorter rows share
    /// blocks.
    pub(crate) const LONG_ROW: usize = 128;

    /// The same for a program of several instructions, which gathers an operand once and reads it several times.
    pub(crate) const LONG_ROW_OF_PROGRAM: usize = 512;

    /// Bytes of the longest vectors (AVX-512).
    pub(crate) const VECTOR_BYTES: usize = 64;

    /// The largest number of vectors of a small block. Larger blocks leave too few registers for the values of a program.
    pub(crate) const MAX_SMALL_BLOCK: usize = 4;

    /// The largest size of all small blocks of a program, in bytes: a quarter of the second-level cache of most processors.
    pub(crate) const MAX_SMALL_BLOCKS: usize = 1 << 18;

    /// Elements per total. A task with fewer elements per total spends more time on clearing and combining its totals than on the
    /// reduction.
    pub(crate) const MIN_PER_TOTAL: usize = 4;

    /// Blocks that are accumulated before their total is put aside. More blocks cause larger rounding errors, fewer blocks cause more work.
    pub(crate) const STAGE: usize = 16;
}

/// Rows of operands that broadcast.
pub(crate) mod rows {
    /// Elements of a row. Shorter rows are copied into blocks of several rows, because a loop for each row takes longer.
    pub(crate) const MIN_LOOPED_ROW: usize = 12;

    /// The same if the row of an operand repeats: such rows are copied faster.
    pub(crate) const MIN_LOOPED_REPEATED_ROW: usize = 24;

    /// Elements of a repeating row. Shorter rows are copied; loops over longer rows are fast enough.
    pub(crate) const MIN_READ_ROW: usize = 128;

    /// Elements. The longest period of a repeating operand that is copied: the copy must stay in the first-level cache.
    pub(crate) const MAX_PERIOD: usize = 4096;

    /// Elements of a row, in an operation with an operand that has one number for each row. For shorter rows, the numbers are first
    /// repeated along the rows.
    pub(crate) const MIN_SCALED_ROW: usize = 32;

    /// Elements of a row. Operands with longer rows are not gathered.
    pub(crate) const LONG_GATHERED_ROW: usize = 128;

    /// The largest number of elements of a gathered piece.
    pub(crate) const MAX_PIECE: usize = 2 * LONG_GATHERED_ROW;

    /// The number of 4-byte elements of the longest vectors (AVX-512).
    pub(crate) const VECTOR_ELEMENTS: usize = 16;

    /// Rows. At most this many rows are never gathered: gathering takes longer even if the rows are short.
    pub(crate) const FEW_GATHERED_ROWS: usize = 8;

    /// Elements of a row. Rows of this length or more are never gathered, whatever their number.
    pub(crate) const MIN_UNGATHERED_ROW: usize = 16;

    /// The largest number of elements that a plain loop copies: for so short a copy, a `memcpy` call takes longer.
    pub(crate) const MAX_LOOP_COPY: usize = 16;
}

/// Programs whose rows are shorter than a vector.
pub(crate) mod short_axis {
    /// The largest number of elements of a short axis. A longer row is efficient with a separate loop.
    pub(crate) const MAX_LANES: usize = 32;

    /// Elements of a block over all positions of the axis. Several values of a block must stay in the second-level cache.
    pub(crate) const BLOCK: usize = 8192;

    /// The smallest number of elements of a lane: for shorter lanes, a call per lane takes too long.
    pub(crate) const MIN_LANE: usize = 32;

    /// Elements. If the last of the dimensions outside the axis is shorter, the longest of these dimensions takes its place.
    pub(crate) const LONG_DIMENSION: usize = 128;
}

/// Tiles of transposed matrices.
pub(crate) mod transpose {
    /// The number of rows and columns of the squares that are transposed at once in the registers of AVX-512. A matrix with a shorter side
    /// is not tiled.
    pub(crate) const SIDE: usize = 16;

    /// Rows of a tile: two cache lines of each column.
    pub(crate) const TALL: usize = 32;

    /// Columns of a tile. Rows must be long enough for efficient access to the other operands and the result.
    pub(crate) const WIDE: usize = 256;

    /// The distance between rows of a tile, in elements.
    pub(crate) const PITCH: usize = WIDE + SIDE;

    /// Elements of the buffer of a tile; the last tile includes a remainder smaller than a square.
    pub(crate) const TILE: usize = (TALL + SIDE) * PITCH;
}

/// Matrix products.
pub(crate) mod matmul {
    /// Columns. The widest floating-point product that is computed by its definition.
    pub(crate) const FEW_COLUMNS: usize = 64;

    /// Columns. The widest product for the kernel for few columns, which keeps one sum for each column in registers.
    pub(crate) const THIN_COLUMNS: usize = 16;

    /// Elements of each column that are read before the next columns, so that these elements of the left side's rows stay in the
    /// first-level cache.
    pub(crate) const SEGMENT: usize = 1024;

    /// Elements of a row that are summed at once.
    pub(crate) const STRIP: usize = 4096;

    /// Multiplications. The largest product that is computed by its definition: for larger products `gemm` is faster in spite of its start.
    pub(crate) const MAX_BY_DEFINITION: usize = FEW_COLUMNS;

    /// Multiplications. The largest product for the kernel without rearrangement. `gemm` rearranges both sides.
    pub(crate) const MAX_COMPACT: usize = 1 << 13;

    /// The same if both sides are read in place. The value is less than the work of one part of a product that is split by rows.
    pub(crate) const MAX_COMPACT_IN_PLACE: usize = 1 << 16;

    /// The same for a product that is not split, on AMD's processors, which read rows across cache lines as fast as others.
    pub(crate) const MAX_COMPACT_WHOLE: usize = 1 << 18;

    /// Rows. The tallest result for the kernel without rearrangement: rearranging the right side takes as long as computing this many rows.
    pub(crate) const MAX_COMPACT_ROWS: usize = 12;

    /// Elements. The longest single row that this kernel computes with all sums in registers.
    pub(crate) const MAX_COMPACT_ROW: usize = 128;

    /// The smallest number of terms of a sum for the kernel for few columns.
    pub(crate) const MIN_THIN_TERMS: usize = 64;

    /// Multiplications. A smaller product runs on one thread.
    pub(crate) const MIN_PARALLEL: usize = 1 << 18;

    /// The same for one column, where each element of the left side is read for one multiplication.
    pub(crate) const MIN_PARALLEL_COLUMN: usize = 1 << 15;

    /// The smallest number of terms of a sum that is split among threads.
    pub(crate) const MIN_SPLIT_SUM: usize = 1024;

    /// Rows of a unit of row splits: as many as the kernels compute at once.
    pub(crate) const ROW_UNIT: usize = 8;

    /// Columns of a unit of column splits: as many as the kernels compute at once.
    pub(crate) const COLUMN_UNIT: usize = 64;

    /// Columns of a unit in a product with fewer than [`MIN_WIDE`] columns.
    pub(crate) const NARROW_COLUMN_UNIT: usize = 16;

    /// The smallest number of columns of a wide product.
    pub(crate) const MIN_WIDE: usize = 512;

    /// Rows. A product with more rows is split by columns only if it has at least twice as many columns as rows.
    pub(crate) const MANY_ROWS: usize = 256;

    /// The largest number of parts of a product that is split by columns. Each part reads the whole left side.
    pub(crate) const MAX_COLUMN_PARTS: usize = 16;
}

/// Convolutions.
pub(crate) mod conv {
    /// The largest number of elements of a tile of columns, which has at least one window. The tile must stay in the second-level cache.
    pub(crate) const TILE: usize = 1 << 16;

    /// The largest number of partial sums over the batch. More sums give work to more threads, but each sum is as large as the weight.
    pub(crate) const MAX_SUMS: usize = 8;

    /// Windows that are computed before they are copied to the result: a multiple of the windows that each kernel computes at once.
    pub(crate) const CHUNK: usize = 384;

    /// The approximate number of windows that the kernels compute at once.
    pub(crate) const WINDOWS_AT_ONCE: usize = 48;

    /// The number of elements that kernels may read past the last valid element.
    pub(crate) const SLACK: usize = 128;

    /// Elements of a run whose dot products are computed one after the other: the run must stay in the first-level cache.
    pub(crate) const SEGMENT: usize = 2048;

    /// The approximate number of elements of the planes of a group of dot products.
    pub(crate) const RUN_ELEMENTS: usize = 1 << 17;
}

/// Pooling.
pub(crate) mod pool {
    /// The approximate number of elements of the planes of a part. Smaller parts need more starts, larger parts leave threads without work.
    pub(crate) const PART: usize = 1 << 14;

    /// Windows that are computed at once: a vector of AVX2.
    pub(crate) const WINDOWS_AT_ONCE: usize = 8;
}

/// Sorting and running sums.
pub(crate) mod scan {
    /// Elements. Smaller operations run on one thread.
    pub(crate) const MIN_PARALLEL: usize = 1 << 16;

    /// Adjacent lanes that are processed together: a cache line of f32.
    pub(crate) const ADJACENT: usize = 16;

    /// The smallest number of elements of a lane that several threads sort.
    pub(crate) const MIN_SHARED_LANE: usize = 1 << 15;
}

/// Parts of other kernels.
pub(crate) mod parts {
    /// Columns in a part of a row: enough that few cache lines belong to two parts.
    pub(crate) const COLUMNS: usize = 32;

    /// Elements of a part of an optimiser's step: enough to make the start on another thread cheap.
    pub(crate) const STEP_PART: usize = 1 << 15;

    /// Elements that an optimiser's step copies to local arrays at a time. Loops over local arrays need no check for overlap.
    pub(crate) const STEP_BLOCK: usize = 64;
}

/// Operations.
pub(crate) mod ops {
    /// Elements. For smaller tensors, several passes take less time than tracing one fused pass.
    pub(crate) const MIN_FUSED: usize = 1 << 12;

    /// Queries. Under a causal mask, the number of queries in a block is a multiple of this.
    pub(crate) const QUERY_UNIT: usize = 32;

    /// The largest number of blocks of queries. More blocks skip more scores, but each block has a fixed cost.
    pub(crate) const MAX_QUERY_BLOCKS: usize = 8;

    /// Scores. With at least `n²` times this number of scores, `n` blocks are used.
    pub(crate) const SCORES_PER_BLOCK: usize = 1 << 14;
}

/// Memory.
pub(crate) mod memory {
    /// Bytes. Smaller requests are not compared with the available memory, because the check reads a file of the operating system.
    pub(crate) const MIN_CHECKED: usize = 256 << 20;

    /// Bytes. Smaller buffers come from the allocator, which is as fast as the pool.
    pub(crate) const MIN_POOLED: usize = 1 << 10;

    /// The largest number of bytes in the pool, unless `set_pool_capacity` changes it.
    pub(crate) const POOL_CAPACITY: usize = 1 << 30;

    /// Bytes of a cache line.
    pub(crate) const CACHE_LINE: usize = 64;

    /// Bytes of a huge page.
    pub(crate) const HUGE_PAGE: usize = 2 << 20;

    /// Bytes. Larger buffers use huge pages, which need fewer page faults.
    pub(crate) const MIN_HUGE: usize = 4 << 20;
}
