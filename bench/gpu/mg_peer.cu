/* SPDX-License-Identifier: BSD-3-Clause */
/* cuSolverMG's factorization in FP64 on all GPUs: see several.h. The library is
   loaded when it is asked for, since most machines have no use for it. */
#include "bench/gpu/several.h"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#define DISABLE_CUSOLVERMG_DEPRECATED /* there is nothing else in its place */
#if __has_include(<cusolverMg.h>)
#include <cusolverMg.h>
#define WITH_MG
#endif

const char several_mg_name[] = "cuSolverMG getrf FP64, all GPUs";

#ifdef WITH_MG

namespace {

/* Columns of a block. The blocks are dealt to the devices in turn. */
const int64_t WIDTH = 256;

/* ---- the library ---- */

struct Library {
  decltype(&cusolverMgCreate) create;
  decltype(&cusolverMgDestroy) destroy;
  decltype(&cusolverMgDeviceSelect) select;
  decltype(&cusolverMgCreateDeviceGrid) create_grid;
  decltype(&cusolverMgDestroyGrid) destroy_grid;
  decltype(&cusolverMgCreateMatrixDesc) create_matrix;
  decltype(&cusolverMgDestroyMatrixDesc) destroy_matrix;
  decltype(&cusolverMgGetrf_bufferSize) factor_size;
  decltype(&cusolverMgGetrf) factor;
  decltype(&cusolverMgGetrs_bufferSize) solve_size;
  decltype(&cusolverMgGetrs) solve;
  std::string why; /* it cannot be used; empty: it can */
};

/* Looks for the library by its name, and in the folder of cuSOLVER. */
void *open_library() {
  std::vector<std::string> folders = {""};
  Dl_info cusolver = {};
  void *const known = dlsym(RTLD_DEFAULT, "cusolverDnCreate");
  if (known != nullptr && dladdr(known, &cusolver) != 0) {
    const std::string path = cusolver.dli_fname;
    if (path.rfind('/') != std::string::npos)
      folders.push_back(path.substr(0, path.rfind('/') + 1));
  }
  for (const std::string &folder : folders)
    for (const char *end : {".12", ".11", ""})
      if (void *found = dlopen((folder + "libcusolverMg.so" + end).c_str(),
                               RTLD_NOW | RTLD_LOCAL))
        return found;
  return nullptr;
}

/* It stays loaded until the process ends, as CUDA's libraries do. */
void load(Library *to) {
  void *const from = open_library();
  if (from == nullptr) {
    to->why = "libcusolverMg.so is missing";
    return;
  }
  const auto find = [=](const char *name, auto *function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(
        dlsym(from, name));
    if (*function == nullptr && to->why.empty())
      to->why = std::string("libcusolverMg.so has no ") + name;
  };
  find("cusolverMgCreate", &to->create);
  find("cusolverMgDestroy", &to->destroy);
  find("cusolverMgDeviceSelect", &to->select);
  find("cusolverMgCreateDeviceGrid", &to->create_grid);
  find("cusolverMgDestroyGrid", &to->destroy_grid);
  find("cusolverMgCreateMatrixDesc", &to->create_matrix);
  find("cusolverMgDestroyMatrixDesc", &to->destroy_matrix);
  find("cusolverMgGetrf_bufferSize", &to->factor_size);
  find("cusolverMgGetrf", &to->factor);
  find("cusolverMgGetrs_bufferSize", &to->solve_size);
  find("cusolverMgGetrs", &to->solve);
}

/* ---- the factorization ---- */

/* A in the memory of all devices, its right-hand side and its solution in that
   of the first. Every call leaves the caller's device current. */
class Mg {
public:
  explicit Mg(const Systems *s) : s_(s) { load(&lib_); }
  ~Mg();
  Mg(const Mg &) = delete;
  Mg &operator=(const Mg &) = delete;

  std::string open();
  /* Copies A and b to the devices, by a thread for each. */
  std::string bring(int64_t k);
  std::string factor();
  std::string solve(double *x);

private:
  std::string allocate();
  std::string size_work();
  std::string wait();
  std::string on_each(const std::function<void(int device, Calls *c)> &work);
  size_t blocks() const { /* of a device, at most */
    const int64_t all = (s_->n + WIDTH - 1) / WIDTH;
    return static_cast<size_t>((all + count_ - 1) / count_);
  }
  int order() const { return static_cast<int>(s_->n); }
  size_t column() const { return static_cast<size_t>(s_->n) * sizeof(double); }

  const Systems *s_;
  Library lib_ = {};
  int count_ = 0, first_ = 0; /* devices; the one that is current */
  std::vector<int> ids_;
  cusolverMgHandle_t handle_ = nullptr;
  cudaLibMgGrid_t grid_ = nullptr;
  cudaLibMgMatrixDesc_t of_a_ = nullptr, of_b_ = nullptr;
  std::vector<void *> a_, b_, work_; /* by device */
  std::vector<int *> pivots_;
  int64_t work_length_ = 0;
};

std::string Mg::on_each(const std::function<void(int device, Calls *c)> &work) {
  if (count_ == 0) /* open has failed */
    return "";
  std::vector<Calls> calls(static_cast<size_t>(count_));
  in_parallel(count_, [&](int d) {
    Calls *const c = &calls[static_cast<size_t>(d)];
    if (c->ok(cudaSetDevice(ids_[static_cast<size_t>(d)]), "cudaSetDevice"))
      work(d, c);
  });
  (void)cudaSetDevice(first_); /* thread 0 is the caller's */
  for (const Calls &c : calls)
    if (!c.why.empty())
      return c.why;
  return "";
}

std::string Mg::wait() {
  return on_each([](int, Calls *c) {
    c->ok(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  });
}

Mg::~Mg() {
  (void)on_each([this](int d, Calls *) {
    const size_t k = static_cast<size_t>(d);
    (void)cudaFree(a_[k]);
    (void)cudaFree(b_[k]);
    (void)cudaFree(work_[k]);
    (void)cudaFree(pivots_[k]);
  });
  if (of_a_ != nullptr)
    lib_.destroy_matrix(of_a_);
  if (of_b_ != nullptr)
    lib_.destroy_matrix(of_b_);
  if (grid_ != nullptr)
    lib_.destroy_grid(grid_);
  if (handle_ != nullptr)
    lib_.destroy(handle_);
  (void)cudaSetDevice(first_);
}

/* Enables access between the devices, where they can reach each other, so that
   their copies go by NVLink: cuSolverMG leaves that to its caller. */
void let_reach(int other, Calls *c) {
  int self = 0, can = 0;
  if (!c->ok(cudaGetDevice(&self), "cudaGetDevice") || self == other ||
      !c->ok(cudaDeviceCanAccessPeer(&can, self, other),
             "cudaDeviceCanAccessPeer") ||
      can == 0)
    return;
  const cudaError_t st = cudaDeviceEnablePeerAccess(other, 0);
  if (st == cudaErrorPeerAccessAlreadyEnabled)
    (void)cudaGetLastError();
  else
    c->ok(st, "cudaDeviceEnablePeerAccess");
}

std::string Mg::allocate() {
  return on_each([this](int d, Calls *c) {
    const size_t k = static_cast<size_t>(d), width = WIDTH;
    for (int other : ids_)
      let_reach(other, c);
    (void)(c->ok(cudaMalloc(&a_[k], column() * width * blocks()),
                 "cudaMalloc of A") &&
           c->ok(cudaMalloc(&b_[k], column() * width), "cudaMalloc of b") &&
           c->ok(cudaMalloc(&pivots_[k], sizeof(int) * width * blocks()),
                 "cudaMalloc of pivots"));
  });
}

/* One workspace serves both, of the numbers that either needs. */
std::string Mg::size_work() {
  Calls c;
  int64_t by_factor = 0, by_solve = 0;
  (void)(c.ok(lib_.factor_size(handle_, order(), order(), a_.data(), 1, 1,
                               of_a_, pivots_.data(), CUDA_R_64F, &by_factor),
              "MgGetrf_bufferSize") &&
         c.ok(lib_.solve_size(handle_, CUBLAS_OP_N, order(), 1, a_.data(), 1, 1,
                              of_a_, pivots_.data(), b_.data(), 1, 1, of_b_,
                              CUDA_R_64F, &by_solve),
              "MgGetrs_bufferSize"));
  work_length_ = std::max(by_factor, by_solve);
  (void)cudaSetDevice(first_);
  if (!c.why.empty())
    return c.why;
  return on_each([this](int d, Calls *mine) {
    mine->ok(cudaMalloc(&work_[static_cast<size_t>(d)],
                        sizeof(double) * static_cast<size_t>(work_length_)),
             "cudaMalloc of the workspace");
  });
}

std::string Mg::open() {
  Calls c;
  if (!lib_.why.empty())
    return lib_.why;
  if (!(c.ok(cudaGetDevice(&first_), "cudaGetDevice") &&
        c.ok(cudaGetDeviceCount(&count_), "cudaGetDeviceCount")))
    return c.why;
  const size_t count = static_cast<size_t>(count_);
  for (int d = 0; d < count_; d++)
    ids_.push_back((first_ + d) % count_);
  a_.resize(count);
  b_.resize(count);
  work_.resize(count);
  pivots_.resize(count);
  (void)(c.ok(lib_.create(&handle_), "cusolverMgCreate") &&
         c.ok(lib_.select(handle_, count_, ids_.data()), "MgDeviceSelect") &&
         c.ok(lib_.create_grid(&grid_, 1, count_, ids_.data(),
                               CUDALIBMG_GRID_MAPPING_COL_MAJOR),
              "MgCreateDeviceGrid") &&
         c.ok(lib_.create_matrix(&of_a_, s_->n, s_->n, s_->n, WIDTH, CUDA_R_64F,
                                 grid_),
              "MgCreateMatrixDesc of A") &&
         c.ok(lib_.create_matrix(&of_b_, s_->n, 1, s_->n, WIDTH, CUDA_R_64F,
                                 grid_),
              "MgCreateMatrixDesc of b"));
  (void)cudaSetDevice(first_);
  if (c.why.empty())
    c.why = allocate();
  return c.why.empty() ? size_work() : c.why;
}

std::string Mg::bring(int64_t k) {
  return on_each([=](int d, Calls *c) {
    char *to = static_cast<char *>(a_[static_cast<size_t>(d)]);
    for (int64_t j = d * WIDTH; j < s_->n; j += count_ * WIDTH) {
      const size_t bytes =
          column() * static_cast<size_t>(std::min(WIDTH, s_->n - j));
      if (!c->ok(
              cudaMemcpy(to, s_->a + j * s_->n, bytes, cudaMemcpyHostToDevice),
              "copy of A"))
        return;
      to += bytes;
    }
    if (d == 0)
      c->ok(cudaMemcpy(b_[0], s_->side(k), column(), cudaMemcpyHostToDevice),
            "copy of b");
    c->ok(cudaDeviceSynchronize(), "copies");
  });
}

std::string Mg::factor() {
  Calls c;
  int info = 0;
  (void)(c.ok(lib_.factor(handle_, order(), order(), a_.data(), 1, 1, of_a_,
                          pivots_.data(), CUDA_R_64F, work_.data(),
                          work_length_, &info),
              "MgGetrf"));
  const std::string failed = wait();
  if (!c.why.empty() || !failed.empty())
    return c.why.empty() ? failed : c.why;
  return info == 0 ? ""
                   : "info " + std::to_string(info) + " of the factorization";
}

std::string Mg::solve(double *x) {
  Calls c;
  int info = 0;
  (void)(c.ok(lib_.solve(handle_, CUBLAS_OP_N, order(), 1, a_.data(), 1, 1,
                         of_a_, pivots_.data(), b_.data(), 1, 1, of_b_,
                         CUDA_R_64F, work_.data(), work_length_, &info),
              "MgGetrs"));
  const std::string failed = wait();
  if (!c.why.empty() || !failed.empty())
    return c.why.empty() ? failed : c.why;
  if (info != 0)
    return "info " + std::to_string(info) + " of the solve";
  c.ok(cudaMemcpy(x, b_[0], column(), cudaMemcpyDeviceToHost), "copy of x");
  return c.why;
}

} // namespace

Method several_mg(const Systems &s, const Config &c) {
  struct State {
    Mg mg;
    double *x = nullptr;
    std::string unprepared;
    explicit State(const Systems *systems) : mg(systems) {}
  };
  const auto made = std::make_shared<State>(&s);
  Method m;
  m.name = several_mg_name;
  m.group = PAGEABLE;
  m.most_rounds = c.slow_rounds;
  m.failed = made->mg.open();
  m.prepare = [=](int64_t k, int64_t, double *x) {
    made->x = x;
    made->unprepared = made->mg.bring(k);
  };
  m.solve = [=](int64_t, double *) {
    return made->unprepared.empty() ? made->mg.factor() : made->unprepared;
  };
  m.after = [=](std::string *note) {
    *note = text("blocks of %d columns", static_cast<int>(WIDTH));
    return made->mg.solve(made->x);
  };
  return m;
}

#else

Method several_mg(const Systems &, const Config &) {
  Method m;
  m.name = several_mg_name;
  m.group = PAGEABLE;
  m.failed = "compiled without cusolverMg.h";
  return m;
}

#endif
