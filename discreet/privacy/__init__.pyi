from discreet.privacy import conversions as conversions
from discreet.privacy.meaning_plot import plot_meaning as plot_meaning
from discreet.privacy.randomised_response import RandomisedResponse as RandomisedResponse
from discreet.privacy.tradeoffs import TradeOff as TradeOff
from discreet.privacy.tradeoffs import advantage as advantage
from discreet.privacy.tradeoffs import posterior as posterior
from discreet.privacy.tradeoffs import trade_off as trade_off
