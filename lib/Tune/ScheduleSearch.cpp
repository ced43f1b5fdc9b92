//===- ScheduleSearch.cpp - The quickest schedule, measured ---------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attnfuse/Tune/ScheduleSearch.h"
#include "attnfuse/Support/MakeError.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <set>

using namespace mlir;
using namespace mlir::attnfuse;

namespace {
/// Rounds after which what is far behind drops out of its wave.
constexpr size_t kFirstRounds = 5;
constexpr double kFarBehind = 1.15;
/// Rounds for the rest of the wave, and for the comparison of the best.
constexpr size_t kMoreRounds = 15, kFinalRounds = 41;
constexpr size_t kFinalists = 4;
/// Work that takes long gets fewer of the latter: seconds after which no more
/// are begun, but so many at least.
constexpr double kFinalSeconds = 10;
constexpr size_t kLeastFinalRounds = 9;
/// Schedules whose neighbors make the next wave, and how near to the best they
/// have to be.
constexpr size_t kBeamWidth = 2;
constexpr double kNearBest = 1.03;
/// What is so much quicker than its neighbor is an improvement.
constexpr double kImproved = 0.995;
/// Waves without a better schedule, after which the search ends. One may be
/// bad luck: the best may only seem to be that.
constexpr size_t kMaxFutileWaves = 2;

double getMedian(std::vector<double> values) {
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What was measured of one schedule.
struct Samples {
  /// By call, then by round.
  std::vector<std::vector<double>> seconds;
  /// By round.
  std::vector<double> ratios;

  double getRatio() const { return getMedian(ratios); }
};

class Search {
public:
  Search(const ScheduleSpace &space, ScheduleTimer &timer,
         const SearchOptions &options)
      : space(space), timer(timer), options(options), start(timer.getTime()) {}

  llvm::Expected<SearchResult> run();

private:
  double getElapsed() const { return timer.getTime() - start; }
  bool isInTime() const { return getElapsed() < options.budget; }

  /// Those of `schedules` that are new, while there is room for them.
  std::vector<KernelTile> selectNew(llvm::ArrayRef<KernelTile> schedules);
  /// Compiles and times schedules that are new.
  llvm::Error tryWave(llvm::ArrayRef<KernelTile> schedules);
  /// What improvements of the last wave give together, and the neighbors of the
  /// best whose neighbors were not tried yet.
  std::vector<KernelTile> getNextWave();
  void combineImprovements(std::vector<KernelTile> &wave);
  /// Times every contestant once a round, the model's choice among them, for so
  /// many rounds; fewer if `goesOn` says so after one.
  llvm::Error timeRounds(llvm::ArrayRef<size_t> contestants, size_t numRounds,
                         std::vector<Samples> &samples,
                         llvm::function_ref<bool()> goesOn);
  llvm::Error compareBest();
  /// Schedules that have times, the quickest first.
  std::vector<size_t> getRanking() const;
  void report(size_t numNew) const;

  const ScheduleSpace &space;
  ScheduleTimer &timer;
  const SearchOptions &options;
  double start;
  SearchResult result;
  std::set<ScheduleKey> seen;
  /// By schedule; without ratios where it failed.
  std::vector<Samples> samples;
  /// By schedule, whether its neighbors were tried.
  std::vector<bool> isExpanded;
  /// Those whose neighbors were the last wave.
  std::vector<size_t> lastExpanded;
  size_t numWaves = 0;
  /// Waves since the last one that found a better schedule.
  size_t numFutileWaves = 0;
};
} // namespace

std::vector<KernelTile>
Search::selectNew(llvm::ArrayRef<KernelTile> schedules) {
  std::vector<KernelTile> selected;
  for (const KernelTile &tile : schedules)
    if (seen.size() < options.maxSchedules &&
        seen.insert(space.getKey(tile)).second)
      selected.push_back(tile);
  return selected;
}

llvm::Error Search::timeRounds(llvm::ArrayRef<size_t> contestants,
                               size_t numRounds, std::vector<Samples> &samples,
                               llvm::function_ref<bool()> goesOn) {
  size_t numCalls = timer.getNumCalls();
  for (size_t round = 0; round < numRounds; ++round) {
    std::vector<std::vector<double>> seconds(contestants.size(),
                                             std::vector<double>(numCalls));
    for (size_t call = 0; call < numCalls; ++call)
      for (size_t turn = 0; turn < contestants.size(); ++turn) {
        // Another one begins each round.
        size_t which = (round + turn) % contestants.size();
        llvm::Expected<double> time = timer.sample(contestants[which], call);
        if (!time)
          return time.takeError();
        seconds[which][call] = *time;
      }
    auto reference = llvm::find(contestants, size_t(0)) - contestants.begin();
    for (auto [which, contestant] : llvm::enumerate(contestants)) {
      Samples &all = samples[contestant];
      all.seconds.resize(numCalls);
      double logarithm = 0;
      for (size_t call = 0; call < numCalls; ++call) {
        all.seconds[call].push_back(seconds[which][call]);
        logarithm += std::log(seconds[which][call] / seconds[reference][call]);
      }
      all.ratios.push_back(std::exp(logarithm / numCalls));
    }
    if (!goesOn())
      break;
  }
  return llvm::Error::success();
}

llvm::Error Search::tryWave(llvm::ArrayRef<KernelTile> schedules) {
  // The model's choice is begun whatever the budget is.
  bool isFirst = samples.empty();
  auto prepared =
      timer.prepare(schedules, [&] { return isFirst || isInTime(); });
  if (!prepared)
    return prepared.takeError();
  std::vector<size_t> contestants{0};
  if (std::vector<size_t> ranking = getRanking();
      !ranking.empty() && ranking.front() != 0)
    contestants.push_back(ranking.front());
  for (auto [tile, state] : llvm::zip_equal(schedules, *prepared)) {
    size_t index = samples.size();
    if (state.state == PreparedSchedule::State::Ready && index > 0)
      contestants.push_back(index);
    result.schedules.push_back({tile, std::move(state), {}});
    samples.emplace_back();
    isExpanded.push_back(false);
  }
  ++numWaves;
  const PreparedSchedule &choice = result.schedules.front().state;
  if (choice.state != PreparedSchedule::State::Ready)
    return makeError("the model's choice cannot be timed: " + choice.reason);
  if (contestants.back() < result.schedules.size() - schedules.size())
    return llvm::Error::success();

  auto goesOn = [&] { return isInTime(); };
  if (llvm::Error error =
          timeRounds(contestants, kFirstRounds, samples, goesOn))
    return error;
  double best = samples[getRanking().front()].getRatio();
  llvm::erase_if(contestants, [&](size_t contestant) {
    return contestant != 0 &&
           samples[contestant].getRatio() > kFarBehind * best;
  });
  return timeRounds(contestants, kMoreRounds, samples, goesOn);
}

std::vector<size_t> Search::getRanking() const {
  std::vector<std::pair<double, size_t>> byRatio;
  for (auto [schedule, measured] : llvm::enumerate(samples))
    if (!measured.ratios.empty())
      byRatio.emplace_back(measured.getRatio(), schedule);
  llvm::sort(byRatio);
  std::vector<size_t> ranking;
  for (auto [ratio, schedule] : byRatio)
    ranking.push_back(schedule);
  return ranking;
}

void Search::combineImprovements(std::vector<KernelTile> &wave) {
  std::vector<size_t> ranking = getRanking();
  for (size_t parent : lastExpanded) {
    const KernelTile &base = result.schedules[parent].tile;
    double limit = samples[parent].getRatio() * kImproved;
    std::set<ScheduleKey> neighbors;
    for (const KernelTile &tile : space.getNeighbors(base))
      neighbors.insert(space.getKey(tile));
    std::optional<KernelTile> all;
    for (size_t schedule : ranking) {
      const KernelTile &tile = result.schedules[schedule].tile;
      if (samples[schedule].getRatio() > limit)
        break;
      if (!neighbors.count(space.getKey(tile)))
        continue;
      if (!all) {
        all = tile;
        continue;
      }
      // The best two, the best three, and so on.
      if (std::optional<KernelTile> more = space.combine(base, *all, tile)) {
        all = more;
        llvm::append_range(wave, selectNew(*all));
      }
    }
  }
}

std::vector<KernelTile> Search::getNextWave() {
  std::vector<KernelTile> wave;
  std::vector<size_t> ranking = getRanking();
  numFutileWaves = isExpanded[ranking.front()] ? numFutileWaves + 1 : 0;
  if (numFutileWaves == kMaxFutileWaves)
    return wave;
  combineImprovements(wave);
  lastExpanded.clear();
  double limit = samples[ranking.front()].getRatio() * kNearBest;
  for (size_t schedule : ranking) {
    if (lastExpanded.size() == kBeamWidth ||
        samples[schedule].getRatio() > limit)
      break;
    if (isExpanded[schedule])
      continue;
    isExpanded[schedule] = true;
    lastExpanded.push_back(schedule);
    llvm::append_range(
        wave, selectNew(space.getNeighbors(result.schedules[schedule].tile)));
  }
  return wave;
}

llvm::Error Search::compareBest() {
  std::vector<size_t> contestants{0};
  for (size_t schedule : getRanking())
    if (schedule != 0 && contestants.size() <= kFinalists &&
        samples[schedule].getRatio() < 1)
      contestants.push_back(schedule);
  if (contestants.size() == 1)
    return llvm::Error::success();
  // Afresh: the least of many medians is low by chance.
  std::vector<Samples> last(samples.size());
  double begin = getElapsed();
  auto goesOn = [&] {
    return getElapsed() < begin + kFinalSeconds ||
           last.front().ratios.size() < kLeastFinalRounds;
  };
  if (llvm::Error error = timeRounds(contestants, kFinalRounds, last, goesOn))
    return error;
  double best = 1 - options.noise;
  for (size_t schedule : contestants) {
    double ratio = last[schedule].getRatio();
    result.schedules[schedule].finalRatio = ratio;
    if (schedule != 0 && ratio < best) {
      best = ratio;
      result.best = schedule;
    }
  }
  return llvm::Error::success();
}

void Search::report(size_t numNew) const {
  if (!options.progress)
    return;
  size_t numTimed = llvm::count_if(
      llvm::ArrayRef(samples).take_back(numNew),
      [](const Samples &samples) { return !samples.ratios.empty(); });
  options.progress(
      llvm::formatv("wave {0}: {1} schedules, {2} of them timed; the best so "
                    "far takes {3:F3} of the time of the model's choice; {4:F0}"
                    " s",
                    numWaves - 1, numNew, numTimed,
                    samples[getRanking().front()].getRatio(), getElapsed())
          .str());
}

llvm::Expected<SearchResult> Search::run() {
  // By itself, first: what the others compute is compared with it.
  if (llvm::Error error = tryWave(selectNew(space.getChoice())))
    return std::move(error);
  isExpanded[0] = true;
  lastExpanded = {0};
  std::vector<KernelTile> wave = selectNew(options.others);
  llvm::append_range(wave, selectNew(space.getStarts()));
  llvm::append_range(wave, selectNew(space.getNeighbors(space.getChoice())));
  while (!wave.empty()) {
    if (llvm::Error error = tryWave(wave))
      return std::move(error);
    report(wave.size());
    if (!isInTime())
      break;
    wave = getNextWave();
  }
  if (llvm::Error error = compareBest())
    return std::move(error);

  for (auto [tried, measured] : llvm::zip_equal(result.schedules, samples)) {
    if (measured.ratios.empty())
      continue;
    tried.ratio = measured.getRatio();
    tried.numRounds = measured.ratios.size();
    for (const std::vector<double> &seconds : measured.seconds)
      tried.seconds.push_back(getMedian(seconds));
  }
  result.seconds = getElapsed();
  return std::move(result);
}

size_t SearchResult::count(PreparedSchedule::State state) const {
  return llvm::count_if(schedules, [&](const TriedSchedule &schedule) {
    return schedule.state.state == state;
  });
}

llvm::Expected<SearchResult>
mlir::attnfuse::searchSchedules(const ScheduleSpace &space,
                                ScheduleTimer &timer,
                                const SearchOptions &options) {
  return Search(space, timer, options).run();
}
