"""TensorBoard's event files, written by its own writer into `tensorboard/` of the run's folder.

The step of every chart is vec_steps. One record holds all scalars of a row, which costs a tenth of a record each.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event as Record
from tensorboard.compat.proto.event_pb2 import SessionLog
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from gymnast.config.leaves import leaves
from gymnast.metrics.histogram import Histogram
from gymnast.metrics.trackers.base import About, Event, Outcome, Tracker
from gymnast.metrics.trackers.pictures import as_gif

FOLDER = "tensorboard"
SCORES = ("eval/return_mean", "rollout/return_mean", "train/solved")
"""What the hparams page compares runs by."""
NOT_SETTINGS = ("spec.", "log.", "alerts.", "name")


class TensorBoard(Tracker):
    """One event file per process that sends."""

    def __init__(self, about: About) -> None:
        super().__init__(about)
        self._folder = about.folder / FOLDER
        self._writer: EventFileWriter
        self._seconds = 0.0

    def open(self) -> int | None:
        """If the files were deleted, nothing has arrived."""
        is_new = not any(self._folder.glob("events.out.tfevents.*"))
        self._writer = EventFileWriter(str(self._folder))
        self.url = f"tensorboard --logdir {shlex.quote(str(self._folder.parent.parent))}"
        if is_new:
            for summary in _hyperparameters(self.about):
                self._add(0, summary)
            return 0
        return None

    def write(self, event: Event, number: int) -> None:
        """Scalars, histograms and the video of one step."""
        if event.seconds is not None:
            self._seconds = event.seconds
        if event.resumed_at is not None:
            # TensorBoard's purge_step: it forgets what lies at this step and later.
            started = SessionLog(status=SessionLog.START)
            self._writer.add_event(Record(wall_time=self._time(), step=event.resumed_at + 1, session_log=started))
        summary = Summary(value=[Summary.Value(tag=name, simple_value=value) for name, value in event.values.items()])
        for name, histogram in event.histograms.items():
            summary.value.add(tag=name, histo=_histogram(histogram))
        if event.video is not None:
            summary.value.add(tag=f"video/{event.video.stem}", image=_image(event.video))
        self._add(event.vec_steps, summary)

    def _add(self, step: int, summary: Summary) -> None:
        self._writer.add_event(Record(wall_time=self._time(), step=step, summary=summary))

    def _time(self) -> float:
        """When it happened, which may be long before it is sent."""
        return min(self.about.created + self._seconds, time.time())

    def flush(self) -> None:
        """To the disk."""
        self._writer.flush()

    def close(self, outcome: Outcome) -> None:
        """Say how it ended, on the page of hyperparameters too."""
        if outcome.state != "running":
            ended = api_pb2.STATUS_SUCCESS if outcome.state == "finished" else api_pb2.STATUS_FAILURE
            info = plugin_data_pb2.SessionEndInfo(status=ended, end_time_secs=self._time())
            self._add(0, _plugin_summary(metadata.SESSION_END_INFO_TAG, session_end_info=info))
        self._writer.close()


def _histogram(found: Histogram) -> HistogramProto:
    total = sum(found.counts)
    products = [(centre, count) for centre, count in zip(found.centres, found.counts, strict=True)]
    return HistogramProto(
        min=found.edges[0],
        max=found.edges[-1],
        num=total,
        sum=sum(centre * count for centre, count in products),
        sum_squares=sum(centre * centre * count for centre, count in products),
        # Only right limits are kept: an empty bin in front holds the leftmost one.
        bucket_limit=list(found.edges),
        bucket=[0.0, *found.counts],
    )


def _image(video: Path) -> Summary.Image:
    picture = as_gif(video)
    return Summary.Image(height=picture.height, width=picture.width, colorspace=3, encoded_image_string=picture.data)


# --- hyperparameters --------------------------------------------------------------------------------------------------


def _hyperparameters(about: About) -> list[Summary]:
    """The settings of the run, for TensorBoard's page that compares runs by them."""
    start = plugin_data_pb2.SessionStartInfo(group_name=about.name, start_time_secs=about.created)
    infos = []
    for name, value in leaves(dict(about.config)).items():
        if value is None or name.startswith(NOT_SETTINGS):
            continue
        kind = _set(start.hparams[name], value)
        infos.append(api_pb2.HParamInfo(name=name, type=kind))
    scores = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in SCORES]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=scores)
    return [
        _plugin_summary(metadata.EXPERIMENT_TAG, experiment=experiment),
        _plugin_summary(metadata.SESSION_START_INFO_TAG, session_start_info=start),
    ]


def _set(field: Any, value: Any) -> Any:
    """Fill a protobuf value; returns its type."""
    if isinstance(value, bool):
        field.bool_value = value
        return api_pb2.DATA_TYPE_BOOL
    if isinstance(value, (int, float)):
        field.number_value = value
        return api_pb2.DATA_TYPE_FLOAT64
    field.string_value = str(value)
    return api_pb2.DATA_TYPE_STRING


def _plugin_summary(tag: str, **content: Any) -> Summary:
    data = plugin_data_pb2.HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content)
    plugin = SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME, content=data.SerializeToString())
    return Summary(value=[Summary.Value(tag=tag, metadata=SummaryMetadata(plugin_data=plugin))])
