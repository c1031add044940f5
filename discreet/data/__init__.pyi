from discreet.data.loading import load as load
from discreet.data.public import Public as Public
from discreet.data.rows import Data as Data
