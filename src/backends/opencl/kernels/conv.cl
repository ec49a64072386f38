// What every convolution shares; comes before its source. The host has the same struct (conv.h).

// Depth, height, width: a flat image has a depth of 1. Channels are those of one group.
typedef struct {
  long in[3];
  long taps[3];
  long out[3];
  long stride[3];
  long padding[3];
  long dilation[3];
  long batch;
  long groups;
  long in_channels;
  long out_channels;
  long x_batch;
  long x_channel;
  long x[3];
  long w_out;
  long w_in;
  long w[3];
  long y_batch;
  long y_channel;
  long y[3];
  long bias_stride;
  long has_bias;
} Conv;

// A number counted over three extents, the last one fastest.
typedef struct {
  long at[3];
} Place;
Place place_of(const long* extent, long i) {
  Place place;
  place.at[2] = i % extent[2];
  place.at[1] = i / extent[2] % extent[1];
  place.at[0] = i / extent[2] / extent[1];
  return place;
}

// Where a tap meets the image, in elements of one channel; -1 on the padding.
long tap_offset(const Conv* p, const long* out, const long* tap) {
  long offset = 0;
  bool inside = true;
  for (int d = 0; d < 3; ++d) {
    const long at = out[d] * p->stride[d] + tap[d] * p->dilation[d] - p->padding[d];
    inside = inside && at >= 0 && at < p->in[d];
    offset += at * p->x[d];
  }
  return inside ? offset : -1;
}

// Where the output of a pixel is, all images counted, in one channel.
long output_offset(const Conv* p, long pixel) {
  const long count = p->out[0] * p->out[1] * p->out[2];
  const Place at = place_of(p->out, pixel % count);
  return pixel / count * p->y_batch + at.at[0] * p->y[0] + at.at[1] * p->y[1] + at.at[2] * p->y[2];
}
